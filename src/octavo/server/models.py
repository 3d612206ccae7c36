"""GET /v1/models and /v1/models/{id}, in the form that the client's API has."""

from __future__ import annotations

from pathlib import PurePath

import msgspec

from octavo.server.anthropic import models as anthropic
from octavo.server.exchange import Exchange
from octavo.server.service import Service


class ModelPermission(msgspec.Struct, kw_only=True):
    """Everybody may do the same; here because clients expect it."""

    id: str
    object: str = "model_permission"
    created: int
    allow_create_engine: bool = False
    allow_sampling: bool = True
    allow_logprobs: bool = True
    allow_search_indices: bool = False
    allow_view: bool = True
    allow_fine_tuning: bool = False
    organization: str = "*"
    group: None = None
    is_blocking: bool = False


class ModelCard(msgspec.Struct, kw_only=True):
    """One name the model is served under. `root`: the model itself, without the folder it lies in."""

    id: str
    object: str = "model"
    created: int
    owned_by: str = "octavo"
    root: str
    parent: None = None
    max_model_len: int
    permission: list[ModelPermission]


class ModelList(msgspec.Struct, kw_only=True):
    """All names."""

    object: str = "list"
    data: list[ModelCard]


async def list_models(exchange: Exchange, service: Service) -> None:
    """All cards; a page of them for Anthropic's clients."""
    if exchange.speaks_anthropic:
        await anthropic.list_models(exchange, service)
        return
    await exchange.reply_json(ModelList(data=[_card(name, service) for name in service.model_names]))


async def show_model(exchange: Exchange, service: Service, name: str) -> None:
    """One card. Raises ApiError 404."""
    if exchange.speaks_anthropic:
        await anthropic.show_model(exchange, service, name)
        return
    await exchange.reply_json(_card(service.choose_model(name), service))


def _card(name: str, service: Service) -> ModelCard:
    model = service.engine.config.options.model.model
    return ModelCard(
        id=name,
        created=service.created_s,
        root=PurePath(model).name if PurePath(model).is_absolute() or model.startswith(".") else model,
        max_model_len=service.engine.max_model_len,
        permission=[ModelPermission(id=f"modelperm-{name}", created=service.created_s)],
    )
