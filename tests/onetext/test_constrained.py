"""One text with masks: constrained requests among free ones, planned in every way there is, give the same bits."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from fakes.constrained_requests import CHOICES, DATE, PERSON, make_constrained
from fakes.hf_folder import write_hf_folder
from fakes.mixed_requests import MixedRequest, bits, generate
from fakes.tiny_models import TINY_SPECS
from msgspec import structs

from octavo import LLM, RequestOutput, SamplingParams
from octavo.engine.input.prompts import Prompt

BASE = {"max_num_seqs": 16, "max_model_len": 256, "max_num_batched_tokens": 512, "num_gpu_blocks_override": 400}
BACKENDS = {
    "reference": {"kernel_backend": "reference", "block_size": 16},
    "native": {"kernel_backend": "cpu", "block_size": 32},
}
SPEC = TINY_SPECS["llama"]
MARKER = [70, 71]
PATHS = {
    "depth 1": {"max_concurrent_steps": 1},
    "depth 2": {"max_concurrent_steps": 2},
    "depth 3": {"max_concurrent_steps": 3},
    "chunks of 16, depth 2": {"max_num_batched_tokens": 16, "max_concurrent_steps": 2},
    "16 a request, depth 3": {"long_prefill_token_threshold": 16, "max_concurrent_steps": 3},
    "without a prefix cache": {"enable_prefix_caching": False},
    "few at a time": {"max_num_seqs": 3, "max_concurrent_steps": 2},
}


class World:
    """A model on disk, requests, and their outputs alone."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.path = path
        self.options = BASE | options
        self.requests = make_constrained(SPEC.vocab_size, marker=MARKER)
        with LLM(path, **self.options, enable_prefix_caching=False, max_concurrent_steps=1) as llm:
            self.outputs = generate(llm, self.requests, together=False)
        self.alone = bits(self.outputs)

    def text(self, name: str) -> str:
        return self.outputs[name].outputs[0].text

    def request(self, name: str) -> MixedRequest:
        return next(request for request in self.requests if request.name == name)


Worlds = Callable[[str], World]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """name of a back end -> its world, made when first asked for."""
    path = str(write_hf_folder(tmp_path_factory.mktemp("models") / "llama", SPEC))
    return functools.cache(lambda name: World(path, BACKENDS[name]))


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("path_name", PATHS)
def test_the_path_does_not_change_a_bit(worlds: Worlds, path_name: str, name: str) -> None:
    world = worlds(name)
    with LLM(world.path, **world.options | PATHS[path_name]) as llm:
        assert bits(generate(llm, world.requests)) == world.alone, "cold prefix cache"
        assert bits(generate(llm, world.requests[::-1])) == world.alone, "warm prefix cache, other order"


@pytest.mark.parametrize(("name", "num_blocks"), [("reference", 11), ("native", 7)])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_preemption_does_not_change_a_bit(worlds: Worlds, depth: int, name: str, num_blocks: int) -> None:
    """Prompts that fit into the pool together with a block each to grow by, and texts that then outgrow it."""
    world = worlds(name)
    options = world.options | {"max_concurrent_steps": depth}
    params = SamplingParams(seed=5, max_tokens=70, structured_outputs={"regex": r"([a-z]{3} ){14}(end|over and out)"})
    requests = [MixedRequest(str(start), [start + 3 * i for i in range(30)], params) for start in (10, 100, 200)]
    with LLM(world.path, **options) as llm:
        alone = bits(generate(llm, requests, together=False))
    with LLM(world.path, **options | {"num_gpu_blocks_override": num_blocks, "max_model_len": 128}) as llm:
        assert bits(generate(llm, requests)) == alone
        assert llm.engine.front_end.client.stats().scheduler.num_preemptions > 0


@pytest.mark.parametrize("name", BACKENDS)
def test_forced_tokens_are_those_that_sampling_takes(worlds: Worlds, name: str) -> None:
    """Requests for logprobs sample every token."""
    world = worlds(name)
    jumping = [r for r in world.requests if r.params.structured_outputs and not r.params.wants_logprobs]
    stepping = [MixedRequest(r.name, r.prompt, r.params.clone(logprobs=0)) for r in jumping]
    with LLM(world.path, **world.options | {"max_concurrent_steps": 2}) as llm:
        found = generate(llm, stepping)
        num_steps = llm.engine.front_end.client.stats().scheduler.num_steps
    for request in jumping:
        assert token_ids(found[request.name]) == token_ids(world.outputs[request.name]), request.name
    with LLM(world.path, **world.options | {"max_concurrent_steps": 2}) as llm:
        generate(llm, jumping)
        assert llm.engine.front_end.client.stats().scheduler.num_steps < num_steps


def token_ids(output: RequestOutput) -> list[list[int]]:
    return [completion.token_ids for completion in output.outputs]


@pytest.mark.parametrize("depth", [1, 3])
def test_a_text_that_is_taken_up_again_goes_on_as_before(worlds: Worlds, depth: int) -> None:
    """What a front end asks of a new engine: the output received so far comes with the request."""
    world = worlds("native")
    with LLM(world.path, **world.options | {"max_concurrent_steps": depth}) as llm:
        for request in world.requests:
            if not request.params.is_constrained or request.params.n > 1:
                continue
            whole = world.outputs[request.name].outputs[0].token_ids
            for num_known in {0, 1, len(whole) // 3, len(whole) - 1}:
                assert whole[:num_known] + go_on(llm, request, whole[:num_known]) == whole, (request.name, num_known)


def go_on(llm: LLM, request: MixedRequest, known: list[int]) -> list[int]:
    prepared = llm.engine.inputs.prepare(
        Prompt(token_ids=request.prompt), request.params, request_id="again", arrival_s=0.0
    )
    prepared.sequences[0] = structs.replace(prepared.sequences[0], output_token_ids=known)
    *_, last = llm.engine.front_end.drive([prepared])
    return list(last.outputs[0].token_ids)


# ---- what the texts are ---------------------------------------------------------------------------------------------


def test_texts_have_their_form(worlds: Worlds) -> None:
    world = worlds("native")
    for name in ("json greedy", "json seeded", "json compact", "json with logprobs", "json penalized", "json filtered"):
        completion = world.outputs[name].outputs[0]
        if completion.finish_reason == "stop":
            assert set(json.loads(completion.text)) == set(PERSON["required"])
    assert re.fullmatch(DATE, world.text("regex"))
    assert re.fullmatch(r"[0-9]{1,3}(\+[0-9]{1,3})*\+?", world.text("grammar"))
    for name in ("choice", "choice greedy"):
        assert world.text(name) in CHOICES


@pytest.mark.parametrize("name", ["regex without ends", "regex for long"])
def test_a_complete_text_stops_where_no_end_can_be_written(worlds: Worlds, name: str) -> None:
    completion = worlds("native").outputs[name].outputs[0]
    assert re.fullmatch(DATE, completion.text)
    assert (completion.finish_reason, completion.stop_reason) == ("stop", None)
    assert SPEC.eos_token_ids[0] not in completion.token_ids


def test_the_constraint_begins_behind_the_reasoning_that_its_budget_ends(worlds: Worlds) -> None:
    ids = worlds("native").outputs["behind reasoning"].outputs[0].token_ids
    assert ids[6:8] == MARKER
    assert worlds("native").text("behind reasoning").endswith(tuple(CHOICES))


def test_logprobs_are_of_the_raw_logits(worlds: Worlds) -> None:
    """The mask changes which token is taken, not how likely the model found it."""
    world = worlds("native")
    request = world.request("json with logprobs")
    free = request.params.clone(structured_outputs=None, max_tokens=1)
    with LLM(world.path, **world.options) as llm:
        found = llm.generate(request.prompt, free, use_tqdm=False)[0].outputs[0]
    constrained = world.outputs[request.name].outputs[0]
    assert found.logprobs is not None
    assert constrained.logprobs is not None
    best = dict(list(found.logprobs[0].items())[1:])
    assert best.items() <= constrained.logprobs[0].items()
