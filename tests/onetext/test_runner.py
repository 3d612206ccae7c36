"""One text: the runner on tiny models gives the same ids and logprobs, to the bit, however a sequence is computed."""

from functools import cache

import pytest
from fakes.batches import cache_spec
from fakes.checkpoint import DictCheckpoint
from fakes.plans import blocks_for, plan, sequence
from fakes.tiny_models import TINY_SPECS
from fakes.tiny_weights import tiny_tensors

from octavo.kernels.dispatch import make_ops
from octavo.models import load_model
from octavo.proto.sampling import SamplingParams
from octavo.runner import ModelRunner

BLOCKS = 4  # of 16 tokens, a row and group
NUM_TOKENS = 8
PROMPT = [(37 * i + 5) % 320 for i in range(45)]
SAMPLING = {
    "greedy": SamplingParams(temperature=0.0, logprobs=3, prompt_logprobs=1),
    "seeded": SamplingParams(temperature=1.2, top_p=0.9, presence_penalty=0.4, logprobs=3, prompt_logprobs=1),
}
OTHERS = {1: [7], 2: [(11 * i) % 320 for i in range(30)]}


@cache
def model_of(name: str, dtype: str):
    spec = TINY_SPECS[name]
    ops = make_ops("reference", dtype)
    return ops, load_model(DictCheckpoint(spec, tiny_tensors(spec)), ops, 64)


def make_runner(name: str, dtype: str) -> ModelRunner:
    ops, model = model_of(name, dtype)
    num_blocks = 1 + 3 * BLOCKS * len(model.kv_groups)
    spec = cache_spec(model, block_size=16, num_blocks=num_blocks, dtype=dtype)
    return ModelRunner(model, ops, spec, max_num_seqs=3, max_model_len=64, max_num_batched_tokens=256)


def run(name: str, dtype: str, sampling: SamplingParams, *, chunk: int, others=(), replayed=()):
    """Ids, logprobs and prompt logprobs of PROMPT's continuation; `others` are rows that decode in the same steps."""
    runner = make_runner(name, dtype)
    num_groups = len(model_of(name, dtype)[1].kv_groups)
    known = [*PROMPT, *replayed]
    new = [sequence(0, known, num_prompt=len(PROMPT), sampling=sampling, seed=5)]
    new += [sequence(row, OTHERS[row], sampling=SamplingParams(temperature=0.8), seed=row) for row in others]
    blocks = [entry for item in new for entry in blocks_for(item.row, BLOCKS, num_groups=num_groups)]
    lengths = {row: len(OTHERS[row]) for row in others}
    done = dict.fromkeys(others, 0)
    ids, logprobs, prompt_logprobs, start, step_id = list(replayed), [], [], 0, 0
    while len(ids) < NUM_TOKENS:
        count = min(chunk, len(known) + len(ids) - len(replayed) - start)
        samples = start + count == len(known) + len(ids) - len(replayed)
        shares = [(0, start, count, samples)]
        for row in others:
            shares.insert(0, (row, done[row], lengths[row] - done[row], True))
        result = runner.execute(plan(step_id, shares, new=new, new_blocks=blocks))
        assert result.failed == {}
        place = len(shares) - 1
        ids += result.token_ids[place]
        logprobs += result.logprobs.get(place, [])
        prompt_logprobs += result.prompt_logprobs.get(place, [])
        for row in others:
            done[row] = lengths[row]
            lengths[row] += 1
        start, step_id, new, blocks = start + count, step_id + 1, [], []
    return ids, logprobs, prompt_logprobs


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["llama", "gemma3_text"])
@pytest.mark.parametrize("sampling", SAMPLING.values(), ids=SAMPLING)
class TestOneText:
    @pytest.mark.parametrize("chunk", [1, 16, 23])
    def test_a_prompt_may_be_cut_anywhere(self, name, dtype, sampling, chunk):
        assert run(name, dtype, sampling, chunk=chunk) == run(name, dtype, sampling, chunk=64)

    def test_company_changes_nothing(self, name, dtype, sampling):
        assert run(name, dtype, sampling, chunk=20, others=(1, 2)) == run(name, dtype, sampling, chunk=64)

    def test_a_replayed_sequence_goes_on_the_same(self, name, dtype, sampling):
        ids, logprobs, prompt_logprobs = run(name, dtype, sampling, chunk=64)
        replayed = run(name, dtype, sampling, chunk=10, replayed=tuple(ids[:5]))
        assert replayed == (ids, logprobs[5:], prompt_logprobs)
