"""The admin application: never on the public port, but on a loopback port with its own key, or on a unix socket.

Owns: /reset_prefix_cache, /server_info, /load.   Does not own: the listener (server.py).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

from octavo import __version__
from octavo.server.auth import ApiKeys
from octavo.server.connection import Receive, Send
from octavo.server.cycle import ClientDisconnectedError, Scope
from octavo.server.errors import ApiError, as_api_error, unavailable
from octavo.server.exchange import Exchange
from octavo.server.service import Service


class AdminApp:
    """Every route needs the key, if there is one."""

    def __init__(self, find_service: Callable[[], Service | None], api_key: str | None) -> None:
        self._find_service = find_service
        self._keys = ApiKeys([api_key] if api_key else [])
        self._routes = {
            ("POST", "/reset_prefix_cache"): _reset_prefix_cache,
            ("GET", "/server_info"): _server_info,
            ("GET", "/load"): _load,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw: bytes = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
        exchange = Exchange(scope, receive, send, raw.decode("latin-1"))
        try:
            if not self._keys.accepts(exchange.headers(b"authorization")):
                raise ApiError(401, "invalid_api_key", "Unauthorized")
            route = self._routes.get((exchange.method, exchange.path))
            if route is None:
                raise ApiError(404, "not_found", "Not Found")
            service = self._find_service()
            if service is None:
                raise unavailable("unavailable", "The model is loading.")
            await route(exchange, service)
        except ClientDisconnectedError:
            return
        except Exception as error:
            if exchange.status is not None:
                raise
            await exchange.fail(as_api_error(error, exchange.request_id))


async def _reset_prefix_cache(exchange: Exchange, service: Service) -> None:
    query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
    resets_running = query.get("reset_running_requests", ["false"])[-1].lower() in ("1", "true")
    is_done = await service.engine.reset_prefix_cache(reset_running=resets_running)
    if not is_done:
        raise ApiError(409, "invalid_request", "Some cached blocks are in use; nothing was reset.")
    await exchange.reply(b"")


async def _server_info(exchange: Exchange, service: Service) -> None:
    engine = service.engine
    await exchange.reply_json(
        {
            "version": __version__,
            "model_names": list(service.model_names),
            "max_model_len": engine.max_model_len,
            "state": engine.state.value,
            "num_restarts": engine.num_restarts,
            "last_death": engine.dead_error,
            "memory": str(engine.config.budget),
        }
    )


async def _load(exchange: Exchange, service: Service) -> None:
    engine = service.engine
    await exchange.reply_json(
        {
            "server_load": service.load.num_active,
            "num_live_requests": engine.num_live_requests,
            "num_queued_requests": service.load.num_queued_requests,
            "num_queued_tokens": service.load.num_queued_tokens,
            "max_num_queued_requests": service.config.max_num_queued_reqs,
            "max_num_queued_tokens": service.config.max_num_queued_tokens,
        }
    )
