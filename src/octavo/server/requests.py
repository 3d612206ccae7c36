"""What all endpoints do with a request before its own part begins: read it, choose names, admit it.

Owns: the order of these steps: cheap refusals first, nothing is tokenized before admission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from octavo.engine.input.processor import PreparedRequest
from octavo.engine.input.prompts import PromptType
from octavo.obs.request_log import escape
from octavo.server.api.sampling_fields import SamplingFields
from octavo.server.body import check_headers, decode, read_body
from octavo.server.errors import invalid_value
from octavo.server.exchange import Exchange
from octavo.server.service import Service

T = TypeVar("T")

MAX_PARAMS_CHARS = 2000
"""Of sampling parameters in the log: a schema among them may have 128 KiB."""


async def read_request(exchange: Exchange, service: Service, kind: type[T]) -> T:
    """The body as a struct. Raises ApiError."""
    check_headers(exchange.header(b"content-type"), exchange.header(b"content-encoding"))
    body = await read_body(exchange.receive, exchange.header(b"content-length"), service.body_limits)
    return decode(body, kind, service.body_limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """What a client wants of its stream."""

    includes_usage: bool
    has_usage_in_chunks: bool
    interval: int
    keep_alive_s: float

    @classmethod
    def of(cls, request: SamplingFields, service: Service) -> StreamSettings:
        options, config = request.stream_options, service.config
        includes = config.enable_force_include_usage or bool(options and options.include_usage)
        return cls(
            includes_usage=includes,
            has_usage_in_chunks=config.enable_force_include_usage
            or (includes and bool(options and options.continuous_usage_stats)),
            interval=request.stream_interval or config.stream_interval,
            keep_alive_s=config.sse_keep_alive_interval,
        )


def truncation(request: SamplingFields, service: Service, max_tokens: int | None) -> int | None:
    """Prompt tokens to keep; None: all. Raises ApiError."""
    wanted = request.truncate_prompt_tokens
    if wanted is None:
        return None
    limit = service.engine.max_model_len
    if wanted == -1:
        return max(1, limit - max(1, max_tokens or 1))
    if not 1 <= wanted <= limit:
        raise invalid_value(f"truncate_prompt_tokens: must be -1 or from 1 to {limit}", "truncate_prompt_tokens")
    return wanted


def cut(token_ids: list[int], num_kept: int, request: SamplingFields) -> list[int]:
    """The last tokens, or with truncation_side right the first."""
    if len(token_ids) <= num_kept:
        return token_ids
    return token_ids[:num_kept] if request.truncation_side == "right" else token_ids[-num_kept:]


def as_prompt(prompt: str | list[int], cache_salt: str | None) -> PromptType:
    """With its salt, in the engine's form."""
    if cache_salt is None:
        return prompt
    if isinstance(prompt, str):
        return {"prompt": prompt, "cache_salt": cache_salt}
    return {"prompt_token_ids": prompt, "cache_salt": cache_salt}


def is_strict(max_tokens: int | None, service: Service) -> bool:
    """True: the client itself named a number of tokens, so that one beyond the context is its error."""
    return max_tokens is not None and max_tokens != service.engine.model.defaults.max_tokens


def note_request(exchange: Exchange, service: Service, prepared: list[PreparedRequest]) -> None:
    """For the log line; with --enable-log-requests the prompt too, escaped and cut."""
    if service.tracer is not None:
        for request in prepared:
            parent, state = exchange.header(b"traceparent"), exchange.header(b"tracestate")
            service.tracer.remember(request.request_id, parent, state)
    exchange.notes["num_prompt_tokens"] = sum(len(request.prompt.token_ids) for request in prepared)
    if not service.config.enable_log_requests:
        return
    for request in prepared:
        shown = request.prompt.text if request.prompt.text is not None else str(request.prompt.token_ids[:64])
        params = escape(repr(request.sampling), MAX_PARAMS_CHARS)
        service.log_prompt(request.request_id, escape(shown, service.config.max_log_len), params)
