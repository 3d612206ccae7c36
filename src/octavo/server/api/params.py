"""From the fields of a request to SamplingParams: one builder for both APIs.

Owns: defaults (request, then the model's), limits on n, refusing what is not done.
Does not own: the checks of values (proto/sampling.py), checks against the model (engine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from octavo.base.errors import ValidationError
from octavo.proto.sampling import RequestOutputKind, SamplingParams
from octavo.proto.sampling_names import REFUSED, check_refused
from octavo.server.api.sampling_fields import SamplingFields, UnsupportedFields
from octavo.server.errors import ApiError, invalid_value
from octavo.server.structured import Constraint

_FROM_MODEL = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
_FROM_REQUEST = (
    "n",
    "seed",
    "stop",
    "stop_token_ids",
    "include_stop_str_in_output",
    "ignore_eos",
    "min_tokens",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "logit_bias",
    "allowed_token_ids",
    "bad_words",
    "logprob_token_ids",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingLimits:
    """What a server allows in one request."""

    max_n: int
    max_request_sequences: int
    max_logprobs: int
    """-1: no limit."""
    has_priorities: bool
    """The scheduler orders by priority."""


def check_unsupported(request: UnsupportedFields) -> None:
    """Raise ApiError for a constraint that would otherwise be dropped."""
    for name in UnsupportedFields.__struct_fields__:
        value = getattr(request, name)
        if value is None:
            continue
        if name in REFUSED:
            try:
                check_refused(name, value)
            except ValidationError as error:
                raise ApiError(400, "unsupported_feature", str(error), param=name) from None
        elif value != {}:
            raise ApiError(
                400, "unsupported_feature", f"{name}: is not supported by this release; leave it out", param=name
            )


def check_common(request: SamplingFields, limits: SamplingLimits, *, num_prompts: int) -> None:
    """Rules for fields that are not sampling parameters, and for the number of texts. Raises ApiError."""
    check_unsupported(request)
    n = 1 if request.n is None else request.n
    if not 1 <= n <= limits.max_n:
        raise invalid_value(f"n={_short(n)}: must be from 1 to {limits.max_n}", "n")
    if n * num_prompts > limits.max_request_sequences:
        most = limits.max_request_sequences
        raise invalid_value(f"n={n} for {num_prompts} prompts: at most {most} texts per request", "n")
    if request.best_of is not None and request.best_of < n:
        raise invalid_value(f"best_of={request.best_of}: must be at least n={n}", "best_of")
    if request.stream_options is not None and not request.stream:
        raise invalid_value("stream_options: only with stream=true", "stream_options")
    if request.prompt_logprobs is not None and request.stream:
        raise invalid_value("prompt_logprobs: not with stream=true", "prompt_logprobs")
    _check_top(request.prompt_logprobs, "prompt_logprobs", limits)
    if request.priority and not limits.has_priorities:
        raise invalid_value("priority: needs a server with --scheduling-policy priority", "priority")
    if request.priority is not None and not -(2**31) <= request.priority < 2**31:
        raise invalid_value(f"priority={_short(request.priority)}: must be a 32-bit integer", "priority")
    if request.stream_interval is not None and not 1 <= request.stream_interval <= 1 << 20:
        raise invalid_value("stream_interval: must be at least 1", "stream_interval")
    salt = request.cache_salt
    if salt is not None and not (1 <= len(salt) <= 128 and not set("@/\\\0") & set(salt)):
        raise invalid_value("cache_salt: must have 1 to 128 characters, none of them @ / \\ or NUL", "cache_salt")


def check_logprobs(value: int | None, name: str, limits: SamplingLimits) -> None:
    """Raise ApiError naming the API's own field."""
    _check_top(value, name, limits)


def _check_top(value: int | None, name: str, limits: SamplingLimits) -> None:
    if value is None:
        return
    if value < -1:
        raise invalid_value(f"{name}={_short(value)}: must be at least 0, or -1 for all", name)
    if limits.max_logprobs != -1 and (value > limits.max_logprobs or value == -1):
        raise invalid_value(f"{name}={_short(value)}: at most {limits.max_logprobs} here", name)


def build_sampling(
    request: SamplingFields,
    defaults: SamplingParams,
    *,
    max_tokens: int | None,
    cap: int | None,
    logprobs: int | None,
    prompt_logprobs: int | None,
    detokenize: bool,
    constraint: Constraint | None = None,
) -> SamplingParams:
    """Raises ValidationError naming the field. max_tokens None: up to `cap`, the model's own, or the context's end."""
    values: dict[str, Any] = {name: getattr(request, name) for name in _FROM_REQUEST}
    for name in _FROM_MODEL:
        given = getattr(request, name)
        values[name] = getattr(defaults, name) if given is None else given
    values = {name: value for name, value in values.items() if value is not None}
    return SamplingParams(
        **values,
        max_tokens=cap if max_tokens is None else max_tokens,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        detokenize=detokenize,
        structured_outputs=None if constraint is None else constraint.params,
        output_kind=RequestOutputKind.DELTA if request.stream else RequestOutputKind.FINAL_ONLY,
    )


def _short(value: int) -> str:
    return str(value) if abs(value) < 10**30 else "a huge number"
