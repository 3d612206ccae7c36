"""One text with masks on SmolLM2: alone, in a batch, in a batch of 64, with every depth and a warm cache."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.constrained_requests import PERSON, make_constrained
from fakes.mixed_requests import MixedRequest, bits, generate

from octavo import LLM, SamplingParams

pytestmark = pytest.mark.needs_smollm2

BASE: dict[str, Any] = {"max_num_seqs": 64, "max_model_len": 256, "block_size": 32, "num_gpu_blocks_override": 300}
MARKER = [30, 31]
CITIES = ("Lisbon", "Oslo", "Quito", "Seoul")


def requests_of(*, is_many: bool) -> list[MixedRequest]:
    mixed = make_constrained(49152, marker=MARKER, max_tokens=40)
    return mixed * 2 if is_many else [request for request in mixed if request.params.is_constrained][::3]


@pytest.fixture(scope="module")
def path(smollm2_path: Any) -> str:
    return str(smollm2_path)


@pytest.fixture(scope="module")
def alone(path: str) -> dict[str, Any]:
    """The bits of `requests_of(is_many=False)`, each by itself."""
    with LLM(path, **BASE, enable_prefix_caching=False, max_concurrent_steps=1) as llm:
        return bits(generate(llm, requests_of(is_many=False), together=False))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_path_does_not_change_a_bit(path: str, alone: dict[str, Any], depth: int) -> None:
    requests = requests_of(is_many=False)
    with LLM(path, **BASE, max_num_batched_tokens=64, max_concurrent_steps=depth) as llm:
        assert bits(generate(llm, requests)) == alone, "cold prefix cache"
        assert bits(generate(llm, requests[::-1])) == alone, "warm prefix cache, other order"


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_batch_of_64_does_not_change_a_bit(path: str, alone: dict[str, Any], depth: int) -> None:
    requests = requests_of(is_many=False)
    filling = [
        MixedRequest(f"{r.name} {i}", r.prompt, r.params.clone(seed=i)) for i, r in enumerate(requests_of(is_many=True))
    ]
    with LLM(path, **BASE, max_num_batched_tokens=128, max_concurrent_steps=depth) as llm:
        found = bits(generate(llm, requests + filling))
    assert {name: found[name] for name in alone} == alone


def test_a_text_of_a_schema_is_an_instance_of_it(path: str) -> None:
    params = SamplingParams(temperature=0.7, seed=1, max_tokens=120, structured_outputs={"json": PERSON})
    with LLM(path, **BASE) as llm:
        outputs = llm.generate([f"A person from {city} as JSON: " for city in CITIES], params, use_tqdm=False)
    for output in outputs:
        completion = output.outputs[0]
        assert completion.finish_reason == "stop"
        value = json.loads(completion.text)
        assert list(value) == PERSON["required"]
        assert set(value["tags"]) <= {"red", "green", "blue"}
