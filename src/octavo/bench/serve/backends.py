"""What is asked of a server, and how its chunks are read, for each kind of endpoint.

Owns: bodies of requests, the parts of a chunk that are measured.   Does not own: sending, timing.
A new kind of endpoint is an entry of BACKENDS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from octavo.bench.samples import Sample
from octavo.bench.serve.client import ExchangeError


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyOptions:
    """What all requests of a run have in common."""

    models: tuple[str, ...]
    """Names for the `model` field: one, or several that requests are spread over (adapters)."""
    ignore_eos: bool = False
    logprobs: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields added to each body, sampling parameters among them; they win."""


def completions_body(sample: Sample, options: BodyOptions, model: str) -> dict[str, Any]:
    """A body for /v1/completions: the prompt as text if the sample has one, as token ids otherwise."""
    body: dict[str, Any] = {
        "model": model,
        "prompt": sample.prompt_token_ids if sample.text is None else sample.text,
        "max_tokens": sample.num_output_tokens,
    }
    if options.logprobs is not None:
        body["logprobs"] = options.logprobs
    return _completed(body, options)


def chat_body(sample: Sample, options: BodyOptions, model: str) -> dict[str, Any]:
    """A body for /v1/chat/completions: the prompt is the user's one message."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": sample.text}],
        "max_completion_tokens": sample.num_output_tokens,
    }
    if options.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": options.logprobs}
    return _completed(body, options)


def _completed(body: dict[str, Any], options: BodyOptions) -> dict[str, Any]:
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    if options.ignore_eos:
        body["ignore_eos"] = True
    return body | dict(options.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One kind of endpoint."""

    endpoint: str
    make_body: Callable[[Sample, BodyOptions, str], dict[str, Any]]
    needs_text: bool
    """Whether prompts must be text: the endpoint takes no token ids."""


_COMPLETIONS = Backend(endpoint="/v1/completions", make_body=completions_body, needs_text=False)
BACKENDS: dict[str, Backend] = {
    "openai": _COMPLETIONS,
    "vllm": _COMPLETIONS,
    "octavo": _COMPLETIONS,
    "openai-chat": Backend(endpoint="/v1/chat/completions", make_body=chat_body, needs_text=True),
}


class Delta(msgspec.Struct, gc=False):
    """What a chat chunk adds."""

    content: str | None = None
    reasoning: str | None = None


class Choice(msgspec.Struct, gc=False):
    """One choice of a chunk, of either endpoint."""

    text: str | None = None
    delta: Delta | None = None

    @property
    def new_text(self) -> str:
        """What it adds, reasoning included."""
        if self.text is not None:
            return self.text
        delta = self.delta
        return "" if delta is None else (delta.reasoning or "") + (delta.content or "")


class Usage(msgspec.Struct, gc=False):
    """Token counts of a request."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Chunk(msgspec.Struct, gc=False):
    """The fields of a chunk that are measured; all others are skipped while parsing."""

    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(Chunk)


def read_chunk(data: bytes) -> Chunk:
    """Parse one event's data. Costs about a microsecond. Raises ExchangeError."""
    try:
        return _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise ExchangeError(f"a chunk is not as expected ({error}): {data[:200]!r}") from error


def describe_error(body: bytes | Any) -> str:
    """The message inside an error answer, bounded; the answer itself where it has none."""
    if isinstance(body, bytes):
        try:
            body = msgspec.json.decode(body)
        except msgspec.MsgspecError:
            return body[:500].decode(errors="replace").strip()
    found = body
    if isinstance(found, dict):
        found = found.get("error", found)
    if isinstance(found, dict):
        found = found.get("message", found)
    return str(found)[:500]
