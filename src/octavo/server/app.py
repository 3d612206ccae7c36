"""The public ASGI application: from a raw path to an endpoint, with one place for keys, errors and the request's line.

Owns: the table of routes, who needs a key (auth.py says which paths do not), what is said while the model loads.
Does not own: endpoints. There is no middleware: each request passes through `__call__` once.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol
from urllib.parse import unquote

from octavo.base.log import get_logger
from octavo.config.server_options import ServerConfig
from octavo.obs.request_log import RequestLine, log_request
from octavo.server import chat, completions, health, models, tokenize
from octavo.server.admission import QueueFullError
from octavo.server.anthropic import endpoint as anthropic
from octavo.server.anthropic.route import COUNT_TOKENS, MESSAGES, MODELS, adopt, speaks_anthropic
from octavo.server.auth import OPEN_PATHS, ApiKeys
from octavo.server.connection import Receive, Send
from octavo.server.cors import CrossOrigin
from octavo.server.cycle import ClientDisconnectedError, Scope
from octavo.server.errors import ApiError, as_api_error, unavailable
from octavo.server.exchange import Exchange
from octavo.server.openapi import render_docs, render_openapi
from octavo.server.responses import endpoint as responses
from octavo.server.service import Service

access_log = get_logger("octavo.server.access")

Endpoint = Callable[[Exchange, Service], Awaitable[None]]
LOADING_RETRY_AFTER_S = 2
CLIENT_GONE = 499
_RESPONSES = "/v1/responses/"


class Observer(Protocol):
    """Who counts requests, and renders /metrics as (page, content type)."""

    async def render(self) -> tuple[bytes, str]: ...
    def note_rejection(self, reason: str) -> None: ...
    def note_http(self, method: str, path: str, status: int, seconds: float) -> None: ...


class App:
    """Serves from the first moment; `service` is set when the engine is ready."""

    def __init__(self, config: ServerConfig, observer: Observer) -> None:
        self.service: Service | None = None
        self._observer = observer
        self._is_draining = False
        self._config = config
        self._keys = ApiKeys(config.api_key)
        self._cors = CrossOrigin(config)
        self._root = (config.root_path or "").rstrip("/")
        self._quiet = frozenset(path for name in config.disable_access_log_for_endpoints for path in name.split(","))
        self._routes = self._make_routes()

    def _make_routes(self) -> dict[str, dict[str, Endpoint]]:
        routes: dict[str, dict[str, Endpoint]] = {
            "/v1/completions": {"POST": completions.serve},
            "/v1/chat/completions": {"POST": chat.serve},
            "/v1/responses": {"POST": responses.serve},
            MESSAGES: {"POST": anthropic.serve},
            COUNT_TOKENS: {"POST": anthropic.count_tokens},
            MODELS: {"GET": models.list_models},
            "/tokenize": {"POST": tokenize.tokenize},
            "/detokenize": {"POST": tokenize.detokenize},
            "/health": {"GET": health.health},
            "/readyz": {"GET": health.ready},
            "/ping": {"GET": health.health, "POST": health.health},
            "/load": {"GET": health.load},
        }
        return routes

    @property
    def routes(self) -> list[tuple[str, str]]:
        """(path, methods) of all there is, for the start-up's list."""
        without_engine = ["/livez", "/version", "/metrics"]
        if not self._config.disable_fastapi_docs:
            without_engine += ["/docs", "/openapi.json"]
        table = {path: ", ".join(methods) for path, methods in self._routes.items()}
        return sorted({**table, MODELS + "/{id}": "GET", **dict.fromkeys(without_engine, "GET")}.items())

    def begin_drain(self) -> None:
        """Refuse what is new from now on."""
        self._is_draining = True
        if self.service is not None:
            self.service.admission.is_draining = True

    # ---- one request ------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"scope type {scope['type']!r}: only http is served")
        exchange = Exchange(scope, receive, send, self._path_of(scope))
        if speaks_anthropic(exchange):
            adopt(exchange)
        try:
            await self._serve(exchange)
        except ClientDisconnectedError:
            exchange.status = exchange.status or CLIENT_GONE
            exchange.notes.setdefault("finish_reason", "abort")
        except Exception as error:
            await self._answer_error(exchange, error)
        finally:
            self._log(
                exchange.request_id,
                exchange.method,
                exchange.path,
                exchange.status or CLIENT_GONE,
                time.monotonic() - exchange.start_s,
                exchange.notes,
            )

    def _path_of(self, scope: Scope) -> str:
        """The raw path, without a proxy's prefix. Never decoded: what is not in the table as it is does not exist."""
        raw: bytes = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
        path = raw.decode("latin-1")
        if self._root and (path == self._root or path.startswith(self._root + "/")):
            path = path[len(self._root) :] or "/"
        return "/metrics" if path == "/metrics/" else path

    async def _serve(self, exchange: Exchange) -> None:
        if self._cors.is_on:
            origins = exchange.headers(b"origin")
            exchange.extra_headers += self._cors.headers(origins[0] if len(origins) == 1 else None)
            if exchange.method == "OPTIONS" and exchange.extra_headers:
                wanted = exchange.headers(b"access-control-request-headers")
                exchange.extra_headers += self._cors.preflight(wanted[0] if wanted else None)
                await exchange.reply(b"", status=204)
                return
        if self._config.enable_request_id_headers:
            exchange.extra_headers.append((b"x-request-id", exchange.choose_request_id().encode()))
        self._check_key(exchange)
        await self._dispatch(exchange)

    def _check_key(self, exchange: Exchange) -> None:
        api_key = exchange.headers(b"x-api-key") if exchange.speaks_anthropic else ()
        if exchange.path not in OPEN_PATHS and not self._keys.accepts(exchange.headers(b"authorization"), api_key):
            message = "Unauthorized: send a valid key as `Authorization: Bearer KEY`."
            raise ApiError(401, "invalid_api_key", message, headers={"www-authenticate": "Bearer"})

    async def _dispatch(self, exchange: Exchange) -> None:
        path, method = exchange.path, "GET" if exchange.method == "HEAD" else exchange.method
        if path.startswith(MODELS + "/") and (name := path[len(MODELS) + 1 :]):
            self._check_method(method, {"GET"})
            await models.show_model(exchange, self._ready_service(), unquote(name))
            return
        if path.startswith(_RESPONSES) and (allowed := responses.methods_of_stored(path[len(_RESPONSES) :])):
            self._check_method(method, allowed)
            raise responses.nothing_stored()
        if path in self._routes:
            self._check_method(method, self._routes[path])
            await self._routes[path][method](exchange, self._ready_service())
            return
        await self._serve_without_engine(exchange, path, method)

    async def _serve_without_engine(self, exchange: Exchange, path: str, method: str) -> None:
        has_docs = not self._config.disable_fastapi_docs
        if path in ("/livez", "/version", "/metrics") or (has_docs and path in ("/docs", "/openapi.json")):
            self._check_method(method, {"GET"})
        if path == "/livez":
            await health.live(exchange)
        elif path == "/version":
            await health.version(exchange)
        elif path == "/metrics":
            page, content_type = await self._observer.render()
            await exchange.reply(page, content_type=content_type)
        elif path == "/openapi.json" and has_docs:
            await exchange.reply(render_openapi(self._root))
        elif path == "/docs" and has_docs:
            await exchange.reply(render_docs(self._root), content_type="text/html; charset=utf-8")
        else:
            raise ApiError(404, "not_found", "Not Found: /docs lists the paths there are." if has_docs else "Not Found")

    def _check_method(self, method: str, allowed: Collection[str]) -> None:
        if method not in allowed:
            methods = ", ".join(sorted(allowed))
            message = f"Method Not Allowed: this path takes {methods}."
            raise ApiError(405, "method_not_allowed", message, headers={"allow": methods})

    def _ready_service(self) -> Service:
        if self._is_draining and self.service is None:
            raise unavailable("shutting_down", "The server is shutting down.", closes=True)
        if self.service is None:
            raise unavailable("unavailable", "The model is loading.", closes=True, retry_after_s=LOADING_RETRY_AFTER_S)
        return self.service

    async def _answer_error(self, exchange: Exchange, error: Exception) -> None:
        failure = as_api_error(error, exchange.request_id)
        exchange.notes["error"] = failure.code
        if isinstance(failure, QueueFullError):
            self._observer.note_rejection(failure.reason)
        if exchange.status is not None:
            raise error  # cut in the middle: the connection must not look as if the answer were whole
        try:
            await exchange.fail(failure)
        except ClientDisconnectedError:
            exchange.status = CLIENT_GONE

    def note_refusal(self, error: ApiError, target: str, seconds: float) -> None:
        """What was no request, or too much of one: counted and logged like the others. See RefusalListener."""
        self._log("-", "-", target.partition("?")[0] or "-", error.status, seconds, {"error": error.code})

    def _log(
        self, request_id: str, method: str, path: str, status: int, seconds: float, notes: Mapping[str, Any]
    ) -> None:
        self._observer.note_http(method, path, status, seconds)
        if self._config.disable_uvicorn_access_log or path in self._quiet:
            return
        line = RequestLine(
            request_id=request_id, route=f"{method} {path}", status=status, e2e_ms=1000 * seconds, **notes
        )
        log_request(access_log, line)
