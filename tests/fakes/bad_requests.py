"""Requests that must be refused, by fault case: what is sent, and the answer that the error contract asks for.

A probe's body is a dict (fields beside a small valid request) or bytes. V is the width of the logits, L the context.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

COMPLETIONS, CHAT, RESPONSES = "/v1/completions", "/v1/chat/completions", "/v1/responses"
SMALL: dict[str, dict[str, Any]] = {
    COMPLETIONS: {"prompt": "ping", "max_tokens": 4, "temperature": 0},
    CHAT: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "temperature": 0},
    RESPONSES: {"input": "hi", "max_output_tokens": 4, "temperature": 0},
    "/tokenize": {"messages": [{"role": "user", "content": "hi"}]},
}


@dataclass(frozen=True)
class Probe:
    """One request, the statuses that are right, and the field that an error must name (None: any or none)."""

    body: dict[str, Any] | bytes
    param: str | None = None
    statuses: tuple[int, ...] = (400,)
    route: str = COMPLETIONS

    @property
    def data(self) -> bytes:
        """As it is sent."""
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(SMALL[self.route] | self.body).encode()


def each(name: str, *values: Any, route: str = COMPLETIONS, **others: Any) -> list[Probe]:
    """A refusal that names `name` for each of these values."""
    return [Probe({name: value} | others, name, route=route) for value in values]


def literal(name: str, text: str, route: str = COMPLETIONS) -> Probe:
    """A value that no JSON encoder would write."""
    body = json.dumps(SMALL[route] | {name: "@"}).replace('"@"', text)
    return Probe(body.encode(), None, route=route)


def fine(*bodies: dict[str, Any], route: str = COMPLETIONS) -> list[Probe]:
    """Valid extremes."""
    return [Probe(body, statuses=(200,), route=route) for body in bodies]


FLOATS = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
INTEGERS = (
    "n", "max_tokens", "min_tokens", "seed", "top_k", "logprobs", "prompt_logprobs", "priority", "stream_interval",
    "truncate_prompt_tokens",
)  # fmt: skip
HUGE = (2**31, 2**32, 2**63, 2**64, -1, 10**30)


def s01(v: int, _: int) -> list[Probe]:
    keys = ({str(v): 5}, {"-1": 5}, {"99999999999999999999": 5}, {"abc": 5}, {"1": "x"}, {"1": True})
    many = {str(i): 1.0 for i in range(5000)}
    return [
        *each("logit_bias", *keys, many, route=CHAT),
        *each("logit_bias", *keys, many),
        Probe(b'{"prompt":"a","logit_bias":{"1":NaN}}'),
        *fine({"logit_bias": {"1": 1e9}}, {"logit_bias": {"1": -100}}),
    ]


def s02(v: int, _: int) -> list[Probe]:
    wrong = ([v], [-1], [2**31], [2**63], list(range(100_000)), [True], [1.5], "1")
    return each("stop_token_ids", *wrong, min_tokens=1) + fine({"stop_token_ids": [v - 1], "min_tokens": 1})


def s04(_v: int, _l: int) -> list[Probe]:
    return each("bad_words", [""], ["x"] * 100_000, ["x" * 1_000_000], [None], "word", [1]) + fine(
        {"bad_words": ["zz", " Zürich"]}
    )


def s05(v: int, _: int) -> list[Probe]:
    bad = ([v], [-1], [2**31], [2**63 - 1], [2**63], [1.5], [True], [[1, 2], [v]], [1, "a"], [None], [{}])
    return [Probe({"prompt": prompt}, None) for prompt in bad]


def s06(_v: int, _l: int) -> list[Probe]:
    probes = [literal(name, text) for name in FLOATS for text in ("NaN", "Infinity", "-Infinity", "1e400")]
    probes += [literal("length_penalty", text) for text in ("NaN", "1e400", "2")]
    probes += [Probe({name: "0.7"}, name) for name in FLOATS]
    return [*probes, *each("temperature", -0.1, 2.1, True, [1])]


def s08(_v: int, _l: int) -> list[Probe]:
    return each("n", 10**9, 5_000_000, 129, 0, -1, "3", [1], 1.5, True)


def s09(_v: int, _l: int) -> list[Probe]:
    fields = ({"best_of": 10**6}, {"n": 4, "best_of": 2}, {"best_of": 4, "stream": True}, {"best_of": 0})
    return [Probe(body, "best_of") for body in fields]


def s10(_v: int, _l: int) -> list[Probe]:
    lists = (["a"] * 200_000, [[1]] * 200_000, [[]], ["a"] * 65, [[1]] * 65)
    return [
        *(Probe({"prompt": prompts}, None, (400, 413)) for prompts in lists),
        Probe({"prompt": ["a"] * 64, "n": 8}, "n"),
    ]


def s11(_v: int, _l: int) -> list[Probe]:
    return [
        *each("logprobs", 10**9, 4294967297, 21, -2),
        *each("prompt_logprobs", 10**6, 4294967297, 21, -2),
        *each("top_logprobs", 21, 4294967297, -1, logprobs=True, route=CHAT),
        Probe({"top_logprobs": 3}, "top_logprobs", route=CHAT),
        *fine({"logprobs": 20}, {"logprobs": 0}),
        *fine({"logprobs": True, "top_logprobs": 20}, route=CHAT),
    ]


def s13(_v: int, length: int) -> list[Probe]:
    return [
        *each("max_tokens", 0, -1, 2**31, 10**30, 1.5),
        literal("max_tokens", "1e30"),
        Probe({"max_tokens": None, "prompt": [7] * length}, None),
        *fine({"max_tokens": 0, "echo": True, "logprobs": 1}, {"max_tokens": None, "prompt": [7] * (length - 1)}),
    ]


def s14(_v: int, _l: int) -> list[Probe]:
    return [
        *each("repetition_penalty", 0, -1, 1e308),
        *each("presence_penalty", 3, -2.1),
        *each("frequency_penalty", 3, -2.1),
        *fine(
            {"presence_penalty": 2.0, "frequency_penalty": -2.0, "repetition_penalty": 0.01, "logprobs": 2},
            {"presence_penalty": -2.0, "frequency_penalty": 2.0, "repetition_penalty": 2.0, "logprobs": 2},
        ),
    ]


def s15(_v: int, _l: int) -> list[Probe]:
    return [
        *each("top_p", 0, 1.5, -0.1),
        *each("top_k", -2, 1.5),
        *each("min_p", 1.1, -0.1),
        *fine({"top_k": 0}, {"top_k": -1}, {"top_k": 1099511627776}, {"top_p": 1}, {"min_p": 1.0}),
    ]


def s16(_v: int, _l: int) -> list[Probe]:
    bad = (["x"] * 17, [str(i) for i in range(1000)], ["y" * 1_000_000], "", [""], [None], {}, 5)
    return each("stop", *bad) + fine({"stop": None}, {"stop": []}, {"stop": ["z" * 256]})


def s18(_v: int, _l: int) -> list[Probe]:
    return [
        *each("max_tokens", True, "16", 16.5),
        *each("stream", "yes", 1),
        *each("n", [1]),
        *each("messages", "hi", [], {}, [1], route=CHAT),
        Probe({"stream": False, "stream_options": {"include_usage": True}}, "stream_options"),
        *each("ignore_eos", 1, "true"),
        *each("echo", "x"),
        *each("prompt", 5, {}, True),
    ]


def s19(_v: int, _l: int) -> list[Probe]:
    both = (200, 400)
    return [Probe({name: value}, None, both) for name in INTEGERS for value in HUGE if (name, value) != ("n", -1)] + [
        Probe({name: value, "logprobs": True}, None, both, CHAT)
        for name in ("top_logprobs", "max_completion_tokens", "seed")
        for value in HUGE
    ]


def s20(_v: int, _l: int) -> list[Probe]:
    return [
        Probe({"prompt": []}, "prompt"),
        Probe({"prompt": [[]]}, "prompt"),
        Probe({"prompt": [[7], []]}, "prompt"),
        Probe({"prompt": "", "add_special_tokens": False}, "prompt"),
        *fine({"prompt": ""}, {"prompt": [""]}),  # the model has a beginning-of-sequence token
    ]


def s22(_v: int, _l: int) -> list[Probe]:
    control = "".join(map(chr, range(1, 32)))
    return [
        *fine({"prompt": "ab\0cd", "echo": True}, {"prompt": control, "echo": True}),
        Probe({"prompt": "\u0301" * 500_000}, None),
        Probe(b'{"prompt":"\xff\xfe"}'),
        Probe(b'{"prompt":"\xc0\xaf"}'),
        Probe(b'{"prompt":"\xed\xa0\x80"}'),
        Probe(b'{"prompt":"\\ud800"}', None, (200, 400)),
    ]


def s23(_v: int, length: int) -> list[Probe]:
    return [Probe({"prompt": [7] * (length + 1)}, None), Probe({"prompt": "a" * 15_000_000}, None, (400, 413))]


def s26(_v: int, _l: int) -> list[Probe]:
    return [
        Probe(b'{"a":' * 100_000),
        Probe(b"[" * 1_000_000),
        Probe(b'{"prompt":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        Probe(b'{"prompt":"a","max_tokens":' + b"9" * 10_000_000 + b"}"),
        Probe(b"{" + b",".join([b'"a":1'] * 1_000_000) + b"}", None, (400, 413)),
        Probe(b""),
        Probe(b"null"),
        Probe(b"{} trailing"),
    ]


def s45(_v: int, _l: int) -> list[Probe]:
    return [
        *each("chat_template", "{{ 7*7 }}", route=CHAT),
        Probe({"chat_template_kwargs": {"chat_template": "{{ 7*7 }}"}}, None, route=CHAT),
        Probe({"chat_template_kwargs": {"messages": []}}, None, route=CHAT),
        Probe({"chat_template_kwargs": {"tokenize": False}}, None, route=CHAT),
        Probe({"chat_template": "{{ 7*7 }}"}, None, route="/tokenize"),
    ]


def s48(_v: int, _l: int) -> list[Probe]:
    def turn(**fields: Any) -> Probe:
        return Probe({"messages": [fields]}, "messages", route=CHAT)

    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "not json"}}
    history = [{"role": "assistant", "content": "a", "tool_calls": [call]}, {"role": "user", "content": "b"}]
    return [
        turn(role="foo", content="x"),
        turn(role="user", content=None),
        turn(role="user"),
        turn(role="user", content=[{"type": "video"}]),
        turn(role="user", content=[{"type": []}]),
        turn(role="user", content=5),
        turn(role="tool", content="x"),
        turn(role=["user"], content="x"),
        Probe({"messages": [{"role": "user", "content": "x"}] * 10_000}, "messages", route=CHAT),
        Probe({"messages": history}, None, (200, 400), CHAT),
        Probe({"messages": [{"role": "assistant", "content": "a"}]}, None, (200, 400), CHAT),
    ]


def s67(_v: int, _l: int) -> list[Probe]:
    remote = {"do_remote_prefill": True, "remote_host": "10.255.255.1", "remote_port": 1, "remote_block_ids": [999999]}
    return [
        Probe({"kv_transfer_params": {"do_remote_prefill": True}}, "kv_transfer_params"),
        Probe({"kv_transfer_params": remote}, "kv_transfer_params"),
        Probe({"kv_transfer_params": {}}, None, (200, 400)),
    ]


PROBES: dict[str, Callable[[int, int], list[Probe]]] = {
    "S01": s01, "S02": s02, "S04": s04, "S05": s05, "S06": s06, "S08": s08, "S09": s09, "S10": s10, "S11": s11,
    "S13": s13, "S14": s14, "S15": s15, "S16": s16, "S18": s18, "S19": s19, "S20": s20, "S22": s22, "S23": s23,
    "S26": s26, "S45": s45, "S48": s48, "S67": s67,
}  # fmt: skip
"""Case -> (V, L) -> its requests."""
