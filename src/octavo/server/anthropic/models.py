"""GET /v1/models and /v1/models/{id} as Anthropic's clients read them.

Owns: the cards and their pages.   Does not own: who is a client of Anthropic (route.py), OpenAI's cards (../models.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import parse_qs

import msgspec

from octavo.server.errors import invalid_value, shown
from octavo.server.exchange import Exchange
from octavo.server.service import Service

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 1000


class MessageModel(msgspec.Struct, kw_only=True, tag_field="type", tag="model"):
    """One name the model is served under."""

    id: str
    display_name: str
    created_at: datetime
    """When the server was ready: when the model was released is in none of its files."""
    max_input_tokens: int
    max_tokens: int
    """Of an answer. Prompt and answer share the context; a larger max_tokens is cut."""
    lifecycle: str = "active"
    capabilities: None = None
    """What a model can do is not said: it depends on its template and the server's flags."""


class MessageModelList(msgspec.Struct, kw_only=True):
    """A page of them."""

    data: list[MessageModel]
    has_more: bool
    """In the direction that was asked for."""
    first_id: str | None
    last_id: str | None


class PageRequest(NamedTuple):
    """What part of a list is wanted; at most one of the cursors."""

    limit: int = DEFAULT_LIMIT
    after_id: str | None = None
    before_id: str | None = None


async def list_models(exchange: Exchange, service: Service) -> None:
    """A page of cards. Raises ApiError 400 for a page that cannot be."""
    names, has_more = take_page(service.model_names, read_page_request(exchange.scope["query_string"]))
    await exchange.reply_json(
        MessageModelList(
            data=[_card(name, service) for name in names],
            has_more=has_more,
            first_id=names[0] if names else None,
            last_id=names[-1] if names else None,
        )
    )


async def show_model(exchange: Exchange, service: Service, name: str) -> None:
    """One card. Raises ApiError 404."""
    await exchange.reply_json(_card(service.choose_model(name), service))


def _card(name: str, service: Service) -> MessageModel:
    return MessageModel(
        id=name,
        display_name=name,
        created_at=datetime.fromtimestamp(service.created_s, UTC),
        max_input_tokens=service.engine.max_model_len,
        max_tokens=service.engine.max_model_len,
    )


def read_page_request(query: bytes) -> PageRequest:
    """Of a query string; the last of a repeated field counts, others are ignored. Raises ApiError 400."""
    fields = {name: values[-1] for name, values in parse_qs(query.decode("latin-1")).items()}
    limit, after_id, before_id = (fields.get(name) for name in ("limit", "after_id", "before_id"))
    if after_id is not None and before_id is not None:
        raise invalid_value("before_id: leave it out beside after_id; a page is on one side of a model", "before_id")
    if limit is None:
        return PageRequest(after_id=after_id, before_id=before_id)
    if not (limit.isascii() and limit.isdigit() and len(limit) < 5 and 1 <= int(limit) <= MAX_LIMIT):
        raise invalid_value(f"limit={shown(limit)}: must be a whole number from 1 to {MAX_LIMIT}", "limit")
    return PageRequest(int(limit), after_id, before_id)


def take_page(names: Sequence[str], page: PageRequest) -> tuple[list[str], bool]:
    """(the names on it, whether there are more beyond). Raises ApiError 400 for a cursor that is no name."""
    if page.before_id is not None:
        left = names[: _place(names, page.before_id, "before_id")]
        return list(left[-page.limit :]), len(left) > page.limit
    left = names if page.after_id is None else names[_place(names, page.after_id, "after_id") + 1 :]
    return list(left[: page.limit]), len(left) > page.limit


def _place(names: Sequence[str], cursor: str, field: str) -> int:
    if cursor not in names:
        raise invalid_value(f"{field}={shown(cursor)}: no model has this id; use first_id or last_id of a page", field)
    return names.index(cursor)
