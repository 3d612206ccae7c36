"""/v1/completions: the request and its answers."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from octavo.server.api.logprobs import CompletionLogprobs, PromptLogprobs
from octavo.server.api.sampling_fields import SamplingFields
from octavo.server.api.usage import Usage


class CompletionRequest(SamplingFields, kw_only=True):
    """`prompt`: a text, token ids, or a list of either."""

    prompt: str | list[Any]
    logprobs: int | None = None
    suffix: str | None = None
    prompt_embeds: Any = None


class CompletionChoice(msgspec.Struct, kw_only=True):
    """One text."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    token_ids: list[int] | None = None
    prompt_logprobs: PromptLogprobs | None = None
    prompt_token_ids: list[int] | None = None


class CompletionResponse(msgspec.Struct, kw_only=True):
    """The answer that is not streamed."""

    id: str
    object: str = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    service_tier: None = None
    system_fingerprint: str | None = None
    usage: Usage
    kv_transfer_params: None = None


class CompletionChunkChoice(msgspec.Struct, kw_only=True):
    """What is new of one text."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: str | None = None
    stop_reason: int | str | UnsetType | None = UNSET
    token_ids: list[int] | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET
