"""What a soak asks: a seeded stream of requests over all endpoints, good and bad.

Owns: bodies, their mix, which statuses are right.   Does not own: sending (exchange.py).
Every body is drawn from the generator that is handed in: the same seed, the same requests.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from octavo.bench.soak.exchange import Manner, Request, render

WORDS = (
    "the",
    "sun",
    "a",
    "river",
    "stone",
    "over",
    "green",
    "seven",
    "walks",
    "and",
    "42",
    "Zürich",
    "日本",
    "😀",
    "{}",
)
REFUSED = (400, 404, 405, 413, 415, 422)
MANNERS = (
    [Manner.PATIENT] * 12 + [Manner.ABORTS] * 4 + [Manner.IMPATIENT, Manner.IMPATIENT, Manner.HANGS_UP, Manner.SLOW]
)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOL = {"name": "find", "description": "Find a person.", "parameters": SCHEMA}
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of request: path, fields of the body, and how often it comes among all."""

    name: str
    path: str
    fields: Callable[[random.Random], Fields]
    weight: int
    is_optional: bool = False
    """Left out for servers that refuse it."""

    def body(self, rng: random.Random, model: str) -> bytes:
        """As JSON."""
        return json.dumps({"model": model} | self.fields(rng)).encode()


def _text(rng: random.Random, most: int = 60) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randrange(1, most)))


def _sampling(rng: random.Random) -> Fields:
    fields: Fields = {"max_tokens": rng.randrange(1, 64), "stream": rng.random() < 0.7}
    choices: list[Fields] = [
        {"temperature": 0},
        {"temperature": 1.0, "seed": rng.randrange(1000)},
        {"temperature": 0.8, "top_p": 0.9, "top_k": 20, "n": rng.randrange(1, 4)},
        {"temperature": 1.2, "frequency_penalty": 0.5, "presence_penalty": 0.3, "repetition_penalty": 1.1},
        {"temperature": 0.5, "min_p": 0.05, "stop": ["\n\n", " the"], "include_stop_str_in_output": True},
        {"temperature": 0.0, "ignore_eos": True, "logit_bias": {"11": -5}},
        {"temperature": 1.0, "min_tokens": 1, "bad_words": ["river"]},
    ]
    if fields["stream"] and rng.random() < 0.5:
        fields["stream_options"] = {"include_usage": True}
    return fields | rng.choice(choices)


def _completion(rng: random.Random) -> Fields:
    prompt: Any = _text(rng)
    roll = rng.random()
    if roll < 0.2:
        # Prefixes that come again.
        prompt = "A long beginning that many prompts share, word for word. " * 6 + prompt
    elif roll < 0.4:
        prompt = [rng.randrange(300, 5000) for _ in range(rng.randrange(1, 400))]
    elif roll < 0.5:
        prompt = [_text(rng, 10) for _ in range(rng.randrange(1, 4))]
    fields = {"prompt": prompt} | _sampling(rng)
    if rng.random() < 0.2:
        fields["logprobs"] = rng.randrange(0, 5)
    if rng.random() < 0.1:
        fields["echo"] = True
    return fields


def _chat(rng: random.Random) -> Fields:
    messages = [{"role": "user", "content": _text(rng)}]
    if rng.random() < 0.4:
        messages = [
            {"role": "system", "content": "Answer in a few words."},
            {"role": "user", "content": _text(rng, 20)},
            {"role": "assistant", "content": _text(rng, 20)},
            *messages,
        ]
    fields: Fields = {"messages": messages}
    fields |= _sampling(rng)
    if rng.random() < 0.2:
        fields |= {"logprobs": True, "top_logprobs": rng.randrange(0, 5)}
    return fields


def _short_chat(rng: random.Random, **others: Any) -> Fields:
    message = {"role": "user", "content": _text(rng, 20)}
    fields: Fields = {"messages": [message], "max_tokens": 48, "stream": rng.random() < 0.5}
    return fields | others


def _structured(rng: random.Random) -> Fields:
    return {"prompt": _text(rng, 20), "max_tokens": 32, "stream": rng.random() < 0.5} | rng.choice(
        [
            {"structured_outputs": {"regex": "[a-z]{3,8}-[0-9]+"}},
            {"structured_outputs": {"choice": ["yes", "no", "perhaps"]}},
            {"structured_outputs": {"json": SCHEMA}},
        ]
    )


def _json_answer(rng: random.Random) -> Fields:
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
    return _short_chat(rng, response_format=wanted)


def _tools(rng: random.Random) -> Fields:
    return _short_chat(
        rng, tools=[{"type": "function", "function": TOOL}], tool_choice=rng.choice(["required", "none"])
    )


def _auto_tools(rng: random.Random) -> Fields:
    return _short_chat(rng, tools=[{"type": "function", "function": TOOL}])


KINDS = (
    Kind("completions", "/v1/completions", _completion, 30),
    Kind("chat", "/v1/chat/completions", _chat, 30),
    Kind("tokenize", "/tokenize", lambda rng: {"prompt": _text(rng)}, 4),
    Kind("detokenize", "/detokenize", lambda rng: {"tokens": [rng.randrange(300, 5000) for _ in range(20)]}, 4),
    Kind("structured", "/v1/completions", _structured, 5, is_optional=True),
    Kind("json_schema", "/v1/chat/completions", _json_answer, 5, is_optional=True),
    Kind("tools", "/v1/chat/completions", _tools, 5, is_optional=True),
    Kind("auto_tools", "/v1/chat/completions", _auto_tools, 5, is_optional=True),
    Kind(
        "responses",
        "/v1/responses",
        lambda rng: {"input": _text(rng, 20), "max_output_tokens": 32, "stream": rng.random() < 0.5},
        5,
        is_optional=True,
    ),
    Kind(
        "messages",
        "/v1/messages",
        lambda rng: {
            "messages": [{"role": "user", "content": _text(rng, 20)}],
            "max_tokens": 32,
            "stream": rng.random() < 0.5,
        },
        5,
        is_optional=True,
    ),
)
PAGES = ("/health", "/readyz", "/livez", "/metrics", "/v1/models", "/version", "/load")
BAD = (
    render("POST", "/v1/completions", b'{"prompt": '),
    render("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": -1}'),
    render("POST", "/v1/completions", b'{"prompt": "a", "temperature": NaN}'),
    render("POST", "/v1/completions", b'{"prompt": "a", "n": 100000}'),
    render("POST", "/v1/completions", b'{"prompt": [-1]}'),
    render("POST", "/v1/completions", b'{"prompt": "a", "model": "nobody"}'),
    render("POST", "/v1/completions", b'{"prompt": "\xff\xfe"}'),
    render("POST", "/v1/completions", json.dumps({"prompt": "long " * 50_000}).encode()),
    render("POST", "/v1/completions", b'{"prompt": "a", "logit_bias": {"99999999": 1}}'),
    render("POST", "/v1/completions", b"[" * 5000 + b"]" * 5000),
    render("POST", "/v1/chat/completions", b'{"messages": []}'),
    render("POST", "/v1/chat/completions", b'{"messages": [{"role": "user"}], "max_tokens": "many"}'),
    render("POST", "/v1/chat/completions", b'{"messages": [{"role": "user", "content": "a"}], "top_logprobs": 99}'),
    render("POST", "/v1/completions", b"prompt=a", content_type="application/x-www-form-urlencoded"),
    render("GET", "/v1/nothing"),
    render("DELETE", "/v1/completions"),
    b"NONSENSE\r\n\r\n",
)
WIDE = json.dumps({"prompt": list(range(300, 700)), "max_tokens": 4, "temperature": 0, "cache_salt": "%d"})
"""Sent by all clients at once before the rest: buffers for the largest steps are made then, not an hour later."""
CANARIES = tuple(
    json.dumps({"prompt": prompt, "max_tokens": 24, "temperature": 0, "ignore_eos": True}).encode()
    for prompt in ("The sun rises in the", "Once upon a time", "1, 2, 3, 4,", "def main():")
)
"""Their answers never change, whatever else runs."""


class RequestMix:
    """Draws requests. Invariant: a kind that is not in `kinds` is never drawn."""

    def __init__(self, model: str, kinds: tuple[Kind, ...] = KINDS) -> None:
        self.model = model
        self.kinds = kinds
        self._weights = [kind.weight for kind in kinds]

    def draw(self, rng: random.Random) -> Request:
        """The next one."""
        roll = rng.random()
        if roll < 0.08:
            return Request(name="bad", data=rng.choice(BAD), statuses=REFUSED)
        if roll < 0.13:
            return Request(name="page", data=render("GET", rng.choice(PAGES)))
        if roll < 0.16:
            index = rng.randrange(len(CANARIES))
            return Request(name=f"canary {index}", data=render("POST", "/v1/completions", CANARIES[index]))
        (kind,) = rng.choices(self.kinds, self._weights)
        data = render("POST", kind.path, kind.body(rng, self.model))
        return Request(name=kind.name, data=data, manner=rng.choice(MANNERS))
