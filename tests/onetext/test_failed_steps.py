"""One text although steps fail: what was in flight is computed again, and nothing of the failed step stays behind."""

from __future__ import annotations

import pytest
from fakes.batches import cache_spec
from fakes.byte_tokenizer import ByteTokenizer
from fakes.checkpoint import DictCheckpoint
from fakes.mixed_requests import bits, make_requests
from fakes.tiny_models import TINY_SPECS
from fakes.tiny_weights import tiny_tensors

from octavo.base.clock import MonotonicClock
from octavo.core.budget import SchedulerLimits
from octavo.core.kv.manager import KvManager
from octavo.core.policy import FcfsPolicy
from octavo.core.scheduler import Scheduler
from octavo.engine.client import InProcessClient
from octavo.engine.core import EngineCore
from octavo.engine.frontend import FrontEnd
from octavo.engine.input.defaults import EndTokens
from octavo.engine.input.processor import InputProcessor, ModelDefaults
from octavo.engine.input.prompts import Prompt
from octavo.engine.input.validate import RequestLimits
from octavo.engine.output.processor import OutputProcessor
from octavo.executor import InProcessExecutor
from octavo.kernels.dispatch import make_ops
from octavo.models import load_model
from octavo.proto.sampling import RequestOutputKind, SamplingParams
from octavo.runner import ModelRunner

SPEC = TINY_SPECS["llama"]
LIMITS = {"max_num_seqs": 8, "max_model_len": 128, "max_num_batched_tokens": 48}


class FlakyModel:
    """Raises in the forward passes whose numbers are given."""

    def __init__(self, model, failing):
        self._model, self._failing, self._num_passes = model, set(failing), 0
        self.spec, self.kv_groups, self.logits = model.spec, model.kv_groups, model.logits

    def forward(self, batch, cache):
        self._num_passes += 1
        if self._num_passes - 1 in self._failing:
            raise RuntimeError("the device hiccuped")
        return self._model.forward(batch, cache)


class Stack:
    """An engine from its parts, with a model that fails now and then."""

    def __init__(self, failing, depth):
        ops = make_ops("reference", "float32")
        model = FlakyModel(load_model(DictCheckpoint(SPEC, tiny_tensors(SPEC)), ops, 128), failing)
        spec = cache_spec(model, block_size=16, num_blocks=100, dtype="float32")
        self.executor = InProcessExecutor(ModelRunner(model, ops, spec, **LIMITS), depth)
        self.kv = KvManager(spec.groups, num_blocks=spec.num_blocks, block_size=16, hash_key=b"k")
        self.scheduler = Scheduler(SchedulerLimits(**LIMITS, max_steps_in_flight=depth), self.kv, FcfsPolicy())
        clock = MonotonicClock()
        core = EngineCore(self.scheduler, self.executor, clock, max_steps_in_flight=depth)
        self.front_end = FrontEnd(InProcessClient(core), OutputProcessor(ByteTokenizer()), clock)
        self.inputs = InputProcessor(
            ByteTokenizer(),
            RequestLimits(vocab_size=SPEC.vocab_size, max_model_len=128, max_logprobs=20),
            ModelDefaults(sampling=SamplingParams(), end_tokens=EndTokens(eos=())),
            engine_seed=0,
        )

    def run(self, requests):
        """name -> the last output."""
        prepared = [
            self.inputs.prepare(
                Prompt(token_ids=request.prompt),
                request.params.clone(output_kind=RequestOutputKind.FINAL_ONLY),
                request_id=request.name,
                arrival_s=0.0,
            )
            for request in requests
        ]
        outputs = {output.request_id: output for output in self.front_end.drive(prepared)}
        self.scheduler.check_integrity()
        return outputs


def run(requests, *, failing=(), depth=1):
    stack = Stack(failing, depth)
    try:
        return stack.run(requests), stack.scheduler.stats()
    finally:
        stack.executor.shutdown()


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("failing", [(0,), (1,), (3,), (2, 9), (0, 5, 11, 17)])
def test_steps_that_fail_do_not_change_a_bit(failing, depth):
    requests = make_requests(SPEC.vocab_size)
    expected, _ = run(requests)
    outputs, stats = run(requests, failing=failing, depth=depth)
    assert bits(outputs) == bits(expected)
    assert stats.num_failed_steps == len(failing)


@pytest.mark.parametrize("depth", [1, 2])
def test_requests_whose_steps_fail_twice_in_a_row_end_with_the_error_and_others_go_on(depth):
    requests = make_requests(SPEC.vocab_size)
    stack = Stack({4, 5, 6, 7} if depth == 1 else set(range(4, 10)), depth)
    outputs = stack.run(requests)
    ended = [c for output in outputs.values() for c in output.outputs if c.finish_reason == "error"]
    assert ended
    assert all("the device hiccuped" in completion.error for completion in ended)
    assert not stack.front_end.has_work
    expected, _ = run(requests[:3])
    assert bits(stack.run(requests[:3])) == bits(expected)
    stack.executor.shutdown()
