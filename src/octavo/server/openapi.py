"""/openapi.json, made from the structs that decode the requests, and /docs, a page that lists the endpoints."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from octavo import __version__
from octavo.server.anthropic.message_types import (
    CountTokensRequest,
    Message,
    MessageErrorResponse,
    MessagesRequest,
    TokenCount,
)
from octavo.server.anthropic.models import MessageModel, MessageModelList
from octavo.server.api.chat_types import ChatCompletionRequest, ChatCompletionResponse
from octavo.server.api.completion_types import CompletionRequest, CompletionResponse
from octavo.server.errors import ErrorResponse
from octavo.server.models import ModelCard, ModelList
from octavo.server.responses.items import Response
from octavo.server.responses.request import ResponsesRequest
from octavo.server.tokenize import DetokenizeRequest, DetokenizeResponse, TokenizeRequest, TokenizeResponse


@dataclass(frozen=True, slots=True)
class Described:
    """An endpoint as documented."""

    method: str
    path: str
    summary: str
    request: type | None = None
    response: type | None = None
    failure: type = ErrorResponse
    other_response: type | None = None
    """In place of `response` for clients of the other API."""


ENDPOINTS: Sequence[Described] = (
    Described("POST", "/v1/chat/completions", "Answer a conversation", ChatCompletionRequest, ChatCompletionResponse),
    Described("POST", "/v1/completions", "Continue prompts", CompletionRequest, CompletionResponse),
    Described("POST", "/v1/responses", "Answer items of a conversation", ResponsesRequest, Response),
    Described("POST", "/v1/messages", "Answer a conversation", MessagesRequest, Message, MessageErrorResponse),
    Described(
        "POST",
        "/v1/messages/count_tokens",
        "Length of a prompt",
        CountTokensRequest,
        TokenCount,
        MessageErrorResponse,
    ),
    Described("GET", "/v1/models", "Names the model is served under", None, ModelList, other_response=MessageModelList),
    Described("GET", "/v1/models/{id}", "One of them", None, ModelCard, other_response=MessageModel),
    Described("POST", "/tokenize", "Text or messages to token ids", TokenizeRequest, TokenizeResponse),
    Described("POST", "/detokenize", "Token ids to text", DetokenizeRequest, DetokenizeResponse),
    Described("GET", "/health", "The engine answers"),
    Described("GET", "/livez", "The server's process answers"),
    Described("GET", "/readyz", "Requests are served now"),
    Described("GET", "/ping", "As /health"),
    Described("POST", "/ping", "As /health"),
    Described("GET", "/version", "Version of Octavo"),
    Described("GET", "/load", "Requests being answered"),
    Described("GET", "/metrics", "Prometheus metrics"),
    Described("GET", "/openapi.json", "This description"),
    Described("GET", "/docs", "A page that lists the endpoints"),
)


def render_openapi(root_path: str) -> bytes:
    """OpenAPI 3.1."""
    mentioned = [
        kind for item in ENDPOINTS for kind in (item.request, item.response, item.other_response, item.failure)
    ]
    kinds = list(dict.fromkeys(kind for kind in mentioned if kind is not None))
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    by_kind = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for item in ENDPOINTS:
        paths.setdefault(item.path, {})[item.method.lower()] = _operation(item, by_kind)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Octavo", "version": __version__},
            "servers": [{"url": root_path or "/"}],
            "paths": paths,
            "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
            "security": [{"key": []}],
        }
    )


def _operation(item: Described, schemas: dict[type, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Success"}
    if item.response is not None:
        forms = [schemas[kind] for kind in (item.response, item.other_response) if kind is not None]
        answer["content"] = {"application/json": {"schema": forms[0] if len(forms) == 1 else {"anyOf": forms}}}
    failure = {"description": "Error", "content": {"application/json": {"schema": schemas[item.failure]}}}
    operation: dict[str, Any] = {"summary": item.summary, "responses": {"200": answer, "default": failure}}
    if item.request is not None:
        content = {"application/json": {"schema": schemas[item.request]}}
        operation["requestBody"] = {"required": True, "content": content}
    if "{id}" in item.path:
        operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    return operation


def render_docs(root_path: str) -> bytes:
    """One page, no scripts, nothing loaded from elsewhere."""
    rows = "".join(
        f"<tr><td>{item.method}</td><td><code>{html.escape(item.path)}</code></td>"
        f"<td>{html.escape(item.summary)}</td></tr>"
        for item in ENDPOINTS
    )
    link = html.escape(f"{root_path}/openapi.json")
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Octavo</title>'
        "<style>body{font:16px/1.5 system-ui;max-width:50rem;margin:2rem auto;padding:0 1rem}"
        "td{padding:.2rem 1rem .2rem 0}</style>"
        f'<h1>Octavo {__version__}</h1><p>Fields of requests and answers: <a href="{link}">openapi.json</a>.</p>'
        f"<table>{rows}</table></html>"
    )
    return page.encode()
