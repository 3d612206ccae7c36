"""Requests whose texts have a form, in every combination with what else decides about a token."""

from __future__ import annotations

from typing import Any

from fakes.mixed_requests import MixedRequest, make_requests

from octavo import SamplingParams

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        "is_here": {"type": "boolean"},
    },
    "required": ["name", "age", "tags", "is_here"],
    "additionalProperties": False,
}
DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-[0-3][0-9]"
CHOICES = ["yes, of course", "yes, perhaps", "no"]
SUM = 'start: term ("+" term)*\nterm: /[0-9]{1,3}/\n'


def make_constrained(vocab_size: int, *, marker: list[int], max_tokens: int = 60) -> list[MixedRequest]:
    """Constrained requests, and free ones between them. marker: ids that stand for the end of reasoning."""

    def ids(length: int, step: int) -> list[int]:
        return [5 + (17 + step * i * i + 3 * i) % (vocab_size - 5) for i in range(length)]

    def sampling(constraint: dict[str, Any], **options: Any) -> SamplingParams:
        base = {"max_tokens": max_tokens, "seed": 77, "structured_outputs": constraint}
        return SamplingParams(**(base | options))

    person, date, choice = {"json": PERSON}, {"regex": DATE}, {"choice": CHOICES}
    compact = {"json": PERSON, "disable_any_whitespace": True}
    prefix = ids(34, 7)
    reasoning = {"structured_after": marker, "thinking_token_budget": 6, "thinking_end_token_ids": marker}
    constrained = {
        "json greedy": (prefix + ids(9, 2), sampling(person, temperature=0)),
        "json seeded": (prefix + ids(3, 11), sampling(person)),
        "json compact": (ids(1, 3), sampling(compact, temperature=0.9)),
        "json with logprobs": (prefix + ids(3, 11), sampling(compact, temperature=0.9, logprobs=2)),
        "json penalized": (ids(20, 13), sampling(compact, repetition_penalty=1.3, frequency_penalty=0.5)),
        "json filtered": (prefix, sampling(person, top_k=40, top_p=0.9, min_p=0.01)),
        "json biased": (ids(16, 5), sampling(compact, logit_bias={9: 5.0, 11: -100.0})),
        "json cut": (ids(16, 5), sampling(person, temperature=0, max_tokens=7)),
        "regex": (ids(33, 17), sampling(date)),
        "regex without ends": (ids(15, 19), sampling(date, ignore_eos=True)),
        "regex for long": (ids(15, 19), sampling(date, min_tokens=30)),
        "choice": (prefix + ids(9, 2), sampling(choice)),
        "choice greedy": (ids(7, 37), sampling(choice, temperature=0)),
        "choices of two": (prefix[:32] + ids(5, 31), sampling(choice, n=2)),
        "grammar": (ids(12, 41), sampling({"grammar": SUM}, max_tokens=20)),
        "any object": (ids(12, 43), sampling({"json_object": True}, max_tokens=24)),
        "behind reasoning": (prefix + ids(2, 47), sampling(choice, **reasoning)),
        "budget alone": (ids(5, 53), SamplingParams(seed=3, max_tokens=12, **dict(list(reasoning.items())[1:]))),
    }
    free = make_requests(vocab_size, max_tokens=12, prefix_len=20)
    mixed: list[MixedRequest] = []
    for idx, (name, (prompt, params)) in enumerate(constrained.items()):
        mixed.append(MixedRequest(name, prompt, params))
        mixed += free[idx : idx + 1]
    return mixed
