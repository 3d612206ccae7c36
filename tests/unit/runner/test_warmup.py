"""Warm-up plans run like any other and leave nothing behind."""

import pytest
from fakes.fake_model import FULL, WINDOW, FakeModel, FakeOps, make_cache_spec
from fakes.plans import blocks_for, plan, sequence

from octavo.runner import ModelRunner, make_warmup_plans

LIMITS = {"max_num_seqs": 2, "max_model_len": 64, "max_num_batched_tokens": 40}


@pytest.mark.parametrize("groups", [(FULL,), (FULL, WINDOW)])
@pytest.mark.parametrize("num_blocks", [3, 4, 9, 100])
def test_warm_up_computes_a_prompt_and_a_decode_and_changes_no_text(groups, num_blocks):
    spec = make_cache_spec(groups=groups, num_blocks=num_blocks)
    warm, cold = (ModelRunner(FakeModel(kv_groups=groups), FakeOps(), spec, **LIMITS) for _ in range(2))
    plans = make_warmup_plans(spec, **LIMITS)
    for warmup in plans:
        assert warm.execute(warmup).failed == {}
    assert [len(batch.tokens) for batch in warm._model.batches][1:] == [1]
    assert len(warm._model.batches[0].tokens) <= 40
    first = plan(
        1, [(0, 0, 3, True)], new=[sequence(0, [1, 2, 3])], new_blocks=blocks_for(0, 1, num_groups=len(groups))
    )
    assert warm.execute(first).token_ids == cold.execute(first).token_ids


def test_a_pool_without_blocks_has_no_warm_up():
    assert make_warmup_plans(make_cache_spec(num_blocks=1), **LIMITS) == []
