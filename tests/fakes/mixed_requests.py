"""Requests of every kind at once, and a way to compare two runs of them to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from octavo import LLM, RequestOutput, SamplingParams


@dataclass(frozen=True)
class MixedRequest:
    """One named request."""

    name: str
    prompt: list[int]
    params: SamplingParams


def make_requests(vocab_size: int, *, max_tokens: int = 12, prefix_len: int = 40) -> list[MixedRequest]:
    """Greedy, seeded, penalized, filtered, with logprobs, n = 2; lengths around blocks, half with a shared prefix."""

    def ids(length: int, step: int) -> list[int]:
        return [5 + (17 + step * i * i + 3 * i) % (vocab_size - 5) for i in range(length)]

    prefix = ids(prefix_len, 7)
    base: dict[str, Any] = {"max_tokens": max_tokens, "ignore_eos": True}

    def sampling(**options: Any) -> SamplingParams:
        return SamplingParams(**(base | {"seed": 1234} | options))

    return [
        MixedRequest("greedy", prefix + ids(9, 2), sampling(temperature=0)),
        MixedRequest("greedy short", ids(1, 3), sampling(temperature=0)),
        MixedRequest("greedy to the block", ids(16, 5), sampling(temperature=0, logprobs=0)),
        MixedRequest("seeded", prefix + ids(3, 11), sampling(temperature=0.9)),
        MixedRequest("seeded twin", prefix + ids(3, 11), sampling(temperature=0.9, seed=99)),
        MixedRequest("top-k and top-p", ids(23, 13), sampling(temperature=1.3, top_k=20, top_p=0.9, logprobs=3)),
        MixedRequest("min-p", ids(33, 17), sampling(temperature=1.5, min_p=0.05)),
        MixedRequest(
            "penalties",
            prefix + ids(30, 19),
            sampling(temperature=0.8, repetition_penalty=1.3, presence_penalty=0.5, frequency_penalty=0.4, logprobs=1),
        ),
        MixedRequest("greedy penalties", ids(15, 23), sampling(temperature=0, frequency_penalty=1.0)),
        MixedRequest("prompt logprobs", prefix + ids(17, 29), sampling(temperature=0, prompt_logprobs=2, logprobs=2)),
        MixedRequest("two of it", prefix[:32] + ids(5, 31), sampling(n=2, temperature=1.0, logprobs=0)),
        MixedRequest("biased", ids(7, 37), sampling(temperature=0.7, logit_bias={9: 5.0, 11: -100.0})),
        MixedRequest("allowed", ids(12, 41), sampling(temperature=1.0, allowed_token_ids=list(range(30, 60)))),
        MixedRequest("ends early", prefix + ids(9, 2), SamplingParams(temperature=0, max_tokens=2, min_tokens=1)),
    ]


def with_stop_strings(requests: list[MixedRequest], outputs: dict[str, RequestOutput]) -> list[MixedRequest]:
    """The requests, and some again with a stop string that their own text holds, split over tokens."""
    more = []
    for request in requests:
        text = outputs[request.name].outputs[0].text
        if len(text) >= 8 and request.params.n == 1:
            middle = len(text) // 2
            stop = ["never to be seen", text[middle : middle + 3]]
            more.append(MixedRequest(f"{request.name}, stopped", request.prompt, request.params.clone(stop=stop)))
    return requests + more


def generate(llm: LLM, requests: list[MixedRequest], *, together: bool = True) -> dict[str, RequestOutput]:
    """Run them in one call, or one after the other. name -> output."""
    if together:
        outputs = llm.generate([r.prompt for r in requests], [r.params for r in requests], use_tqdm=False)
    else:
        outputs = [llm.generate(r.prompt, r.params, use_tqdm=False)[0] for r in requests]
    return {request.name: output for request, output in zip(requests, outputs, strict=True)}


def bits(outputs: dict[str, RequestOutput]) -> dict[str, Any]:
    """All that must not depend on the path, with floats as they are: equality is bit for bit."""
    return {
        name: {
            "prompt_logprobs": output.prompt_logprobs,
            "outputs": [
                (c.index, c.token_ids, c.text, c.logprobs, c.cumulative_logprob, c.finish_reason, c.stop_reason)
                for c in output.outputs
            ],
        }
        for name, output in outputs.items()
    }
