"""ModelRunner over a model that reads its history back from the cache: what it samples must be the lone text."""

import numpy as np
import pytest
from fakes.fake_model import FULL, VOCAB, WINDOW, FakeModel, FakeOps, expected_logits, make_cache_spec, make_spec
from fakes.plans import GREEDY, blocks_for, plan, sequence

from octavo.base.errors import InvariantError
from octavo.models.cost import CostModel
from octavo.proto.failure import Failure
from octavo.proto.sampling import SamplingParams
from octavo.runner import ModelRunner
from octavo.runner.constraints import NOTHING_LEFT

NUM_BLOCKS = 8  # a row and group: 32 tokens
HYBRID = (FULL, WINDOW)


def make_runner(groups=(FULL,), **fields):
    model = FakeModel(kv_groups=groups)
    spec = make_cache_spec(groups=groups, num_blocks=1 + 4 * NUM_BLOCKS * len(groups))
    return ModelRunner(model, FakeOps(), spec, max_num_seqs=4, max_model_len=32, max_num_batched_tokens=64, **fields)


def model_of(runner) -> FakeModel:
    return runner._model


def rows_blocks(*rows, num_groups=1):
    return [entry for row in rows for entry in blocks_for(row, NUM_BLOCKS, num_groups=num_groups)]


def lone_text(prompt, num_tokens: int, groups=(FULL,)) -> list[int]:
    """Greedy continuation without cache, batch or runner."""
    tokens = list(prompt)
    for _ in range(num_tokens):
        tokens.append(int(np.argmax(expected_logits(tokens, groups))))
    return tokens[len(prompt) :]


def decode(runner, row: int, length: int, num_tokens: int, step_id: int = 100) -> list[int]:
    """Sample `num_tokens` tokens one by one, from position `length` on."""
    return [runner.execute(plan(step_id + i, [(row, length + i, 1, True)])).token_ids[0][0] for i in range(num_tokens)]


@pytest.mark.parametrize("groups", [(FULL,), HYBRID])
@pytest.mark.parametrize("chunks", [[7], [3, 4], [1, 1, 5], [6, 1]])
def test_a_prompt_in_chunks_continues_with_the_lone_text(groups, chunks):
    runner = make_runner(groups)
    prompt, start = [11, 12, 13, 14, 15, 16, 17], 0
    for i, count in enumerate(chunks):
        is_last = i == len(chunks) - 1
        new = [sequence(2, prompt)] if i == 0 else []
        blocks = rows_blocks(2, num_groups=len(groups)) if i == 0 else []
        result = runner.execute(plan(i, [(2, start, count, is_last)], new=new, new_blocks=blocks))
        assert len(result.token_ids[0]) == is_last
        start += count
    text = [*result.token_ids[0], *decode(runner, 2, 7, 9)]
    assert text == lone_text(prompt, 10, groups)


def test_sequences_of_mixed_shares_do_not_disturb_each_other():
    runner = make_runner(HYBRID)
    prompts = {0: [1, 2, 3], 1: [4], 3: [5, 6, 7, 8, 9]}
    new = [sequence(row, prompt) for row, prompt in prompts.items()]
    runner.execute(plan(1, [(0, 0, 3, True), (3, 0, 2, False)], new=new, new_blocks=rows_blocks(0, 1, 3, num_groups=2)))
    result = runner.execute(plan(2, [(3, 2, 3, True), (0, 3, 1, True), (1, 0, 1, True)]))
    assert result.token_ids == [
        lone_text(prompts[3], 1, HYBRID),
        lone_text(prompts[0], 2, HYBRID)[1:],
        lone_text(prompts[1], 1, HYBRID),
    ]


def test_a_reused_row_starts_afresh():
    runner = make_runner()
    runner.execute(plan(1, [(0, 0, 9, True)], new=[sequence(0, range(9))], new_blocks=rows_blocks(0)))
    blocks = blocks_for(0, NUM_BLOCKS, first=9)
    new = [sequence(0, [50, 51])]
    result = runner.execute(plan(2, [(0, 0, 2, True)], freed=[0], new=new, new_blocks=blocks))
    assert [*result.token_ids[0], *decode(runner, 0, 2, 3)] == lone_text([50, 51], 4)


def test_a_resumed_sequence_goes_on_where_it_was():
    runner = make_runner()
    prompt = [7, 8, 9]
    text = lone_text(prompt, 6)
    new = [sequence(1, [*prompt, *text[:3]], num_prompt=3)]
    result = runner.execute(plan(1, [(1, 0, 6, True)], new=new, new_blocks=rows_blocks(1)))
    assert [*result.token_ids[0], *decode(runner, 1, 6, 2)] == text[3:]


def test_a_prefix_hit_reads_the_blocks_of_another_row():
    runner = make_runner()
    shared = list(range(20, 28))
    runner.execute(plan(1, [(0, 0, 8, True)], new=[sequence(0, shared)], new_blocks=rows_blocks(0)))
    blocks = [(1, 0, 0, [1, 2, 20])]  # the first two are row 0's
    new = [sequence(1, [*shared, 3])]
    result = runner.execute(plan(2, [(1, 8, 1, True)], new=new, new_blocks=blocks))
    assert result.token_ids[0] == lone_text([*shared, 3], 1)


def test_copies_are_made_before_anything_is_computed():
    runner = make_runner()
    runner.execute(plan(1, [(0, 0, 5, True)], new=[sequence(0, [1, 2, 3, 4, 5])], new_blocks=rows_blocks(0)))
    blocks = [(1, 0, 0, [1, 20])]
    new = [sequence(1, [1, 2, 3, 4, 5, 6])]
    result = runner.execute(plan(2, [(1, 5, 1, True)], new=new, new_blocks=blocks, copies=[(2, 20)]))
    assert result.token_ids[0] == lone_text([1, 2, 3, 4, 5, 6], 1)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_steps_prepared_ahead_give_the_same_text(depth):
    runner = make_runner(HYBRID)
    prompts = {0: [1, 2, 3], 2: [9]}
    new = [sequence(row, prompt) for row, prompt in prompts.items()]
    plans = [plan(0, [(0, 0, 3, True), (2, 0, 1, True)], new=new, new_blocks=rows_blocks(0, 2, num_groups=2))]
    plans += [plan(i, [(2, i, 1, True), (0, 2 + i, 1, True)]) for i in range(1, 9)]
    prepared, texts = [], {0: [], 2: []}
    for i in range(len(plans) + depth):
        if i < len(plans):
            prepared.append(runner.prepare(plans[i]))
        if i >= depth - 1 and prepared:
            step = prepared.pop(0)
            result = runner.finish(step)
            for row, token_ids in zip(step.plan.rows, result.token_ids, strict=True):
                texts[row] += token_ids
    assert texts == {row: lone_text(prompt, 9, HYBRID) for row, prompt in prompts.items()}


def test_steps_behind_a_failed_one_fail_their_entries_and_compute_nothing_unknown():
    runner = make_runner()
    new = [sequence(0, [1, 2]), sequence(1, [3, 4])]
    blocks = rows_blocks(0, 1)
    first = runner.prepare(plan(1, [(0, 0, 2, True), (1, 0, 1, False)], new=new, new_blocks=blocks))
    second = runner.prepare(plan(2, [(0, 2, 1, True), (1, 1, 1, True)]))
    model_of(runner).error = RuntimeError("lost")
    with pytest.raises(RuntimeError, match="lost"):
        runner.finish(first)
    model_of(runner).error = None
    result = runner.finish(second)
    assert list(result.failed) == [0]
    assert result.token_ids[0] == []
    assert len(result.token_ids[1]) == 1


def test_rows_of_unfinished_steps_cannot_be_refilled():
    runner = make_runner()
    runner.prepare(plan(1, [(0, 0, 1, True)], new=[sequence(0, [1])], new_blocks=rows_blocks(0)))
    with pytest.raises(InvariantError, match=r"refills rows \[0\]"):
        runner.prepare(plan(2, [], freed=[0], new=[sequence(0, [2])]))


def test_steps_are_finished_in_order():
    runner = make_runner()
    runner.prepare(plan(1, [(0, 0, 1, True)], new=[sequence(0, [1])], new_blocks=rows_blocks(0)))
    second = runner.prepare(plan(2, [(0, 1, 1, True)]))
    with pytest.raises(InvariantError, match="oldest"):
        runner.finish(second)


def test_a_plan_larger_than_agreed_is_our_bug():
    with pytest.raises(InvariantError, match="65 tokens"):
        make_runner().prepare(plan(1, [(0, 0, 32, False), (1, 0, 32, False), (2, 0, 1, False)]))


def test_a_row_with_bad_logits_fails_alone():
    runner = make_runner()
    model_of(runner).poison = {66}
    new = [sequence(0, [1, 2]), sequence(1, [66]), sequence(2, [3])]
    result = runner.execute(
        plan(1, [(0, 0, 2, True), (1, 0, 1, True), (2, 0, 1, True)], new=new, new_blocks=rows_blocks(0, 1, 2))
    )
    assert result.token_ids == [lone_text([1, 2], 1), [], lone_text([3], 1)]
    assert result.failed == {1: Failure("numeric", "the model's logits are not finite")}
    behind = runner.execute(plan(2, [(1, 1, 1, True), (0, 2, 1, True)]))
    assert list(behind.failed) == [0]
    assert behind.token_ids[1] == lone_text([1, 2], 2)[1:]


@pytest.mark.parametrize("samples", [False, True])
def test_a_hidden_state_that_is_not_finite_fails_its_sequence_whether_or_not_it_samples(samples):
    runner = make_runner()
    model_of(runner).spoiled = {66}
    new = [sequence(0, [1, 2]), sequence(1, [4, 66, 5, 6, 7, 8]), sequence(2, [3])]
    shares = [(0, 0, 2, True), (1, 0, 6 if samples else 4, samples), (2, 0, 1, True)]
    result = runner.execute(plan(1, shares, new=new, new_blocks=rows_blocks(0, 1, 2)))
    assert result.failed == {1: Failure("numeric", "the model's hidden states are not finite")}
    assert result.token_ids == [lone_text([1, 2], 1), [], lone_text([3], 1)]


def test_a_decode_whose_hidden_state_is_not_finite_fails_by_its_logits():
    runner = make_runner()
    model_of(runner).spoiled = {66}
    new = [sequence(0, [1]), sequence(1, [66])]
    result = runner.execute(plan(1, [(0, 0, 1, True), (1, 0, 1, True)], new=new, new_blocks=rows_blocks(0, 1)))
    assert list(result.failed) == [1]
    assert result.token_ids == [lone_text([1], 1), []]


def test_a_sequence_outside_the_vocabulary_fails_alone():
    runner = make_runner()
    new = [sequence(0, [VOCAB]), sequence(1, [3]), sequence(2, [1], sampling=SamplingParams(logit_bias={VOCAB: 1.0}))]
    shares = [(0, 0, 1, True), (1, 0, 1, True), (2, 0, 1, True)]
    result = runner.execute(plan(1, shares, new=new, new_blocks=rows_blocks(0, 1, 2)))
    assert result.token_ids[1] == lone_text([3], 1)
    assert sorted(result.failed) == [0, 2]
    assert all(failure.kind == "internal" and "vocabulary" in failure.text for failure in result.failed.values())


def test_a_sequence_without_a_block_fails_alone():
    runner = make_runner()
    new = [sequence(0, [1, 2, 3, 4, 5]), sequence(1, [3])]
    blocks = [(0, 0, 0, [1]), *rows_blocks(1)]
    result = runner.execute(plan(1, [(0, 0, 5, True), (1, 0, 1, True)], new=new, new_blocks=blocks))
    assert list(result.failed) == [0]
    assert result.failed[0].kind == "internal"
    assert "no block" in result.failed[0].text
    assert result.token_ids[1] == lone_text([3], 1)


def test_masks_that_leave_no_token_fail_alone():
    runner = make_runner()
    new = [sequence(0, [1], sampling=GREEDY.clone(allowed_token_ids=[5], min_tokens=1), eos_token_ids=(5,))]
    result = runner.execute(plan(1, [(0, 0, 1, True)], new=new, new_blocks=rows_blocks(0)))
    assert result.token_ids == [[]]
    assert result.ends[0] == NOTHING_LEFT
    assert not result.failed


def test_a_step_whose_entries_all_fail_computes_nothing():
    runner = make_runner()
    result = runner.execute(plan(1, [(0, 0, 1, True)]))
    assert list(result.failed) == [0]
    assert model_of(runner).batches == []


def test_min_tokens_holds_the_end_back():
    prompt = [3, 1]
    text = lone_text(prompt, 3)
    new = [sequence(0, prompt, sampling=GREEDY.clone(min_tokens=2, stop_token_ids=[text[2]]), eos_token_ids=(text[0],))]
    runner = make_runner()
    result = runner.execute(plan(1, [(0, 0, 2, True)], new=new, new_blocks=rows_blocks(0)))
    tokens = [*prompt, *result.token_ids[0]]
    logits = expected_logits(prompt)
    logits[[text[0], text[2]]] = -np.inf
    assert tokens[2] == int(np.argmax(logits))
    for _ in range(2):
        tokens += decode(runner, 0, len(tokens) - 1, 1)
    logits = expected_logits(tokens[:3])
    logits[[text[0], text[2]]] = -np.inf
    assert tokens[3] == int(np.argmax(logits))
    assert tokens[4] == int(np.argmax(expected_logits(tokens[:4])))


def test_bad_words_are_never_completed():
    prompt = [3, 1]
    text = lone_text(prompt, 2)
    new = [sequence(0, prompt, sampling=GREEDY.clone(bad_words_token_ids=[[text[0], text[1]]]))]
    runner = make_runner()
    result = runner.execute(plan(1, [(0, 0, 2, True)], new=new, new_blocks=rows_blocks(0)))
    assert result.token_ids[0] == text[:1]
    logits = expected_logits([*prompt, text[0]])
    logits[text[1]] = -np.inf
    assert decode(runner, 0, 2, 1) == [int(np.argmax(logits))]


@pytest.mark.parametrize("params", [{"presence_penalty": 2.0, "frequency_penalty": 1.0}, {"repetition_penalty": 3.0}])
def test_penalties_after_a_replay_are_those_of_the_unbroken_run(params):
    sampling = SamplingParams(temperature=0.9, **params)
    prompt = [5, 6]
    whole = make_runner()
    first = whole.execute(
        plan(1, [(0, 0, 2, True)], new=[sequence(0, prompt, sampling=sampling, seed=9)], new_blocks=rows_blocks(0))
    )
    text = [*first.token_ids[0], *decode(whole, 0, 2, 12)]
    resumed = make_runner()
    new = [sequence(3, [*prompt, *text[:7]], num_prompt=2, sampling=sampling, seed=9)]
    result = resumed.execute(plan(1, [(3, 0, 9, True)], new=new, new_blocks=rows_blocks(3)))
    assert [*result.token_ids[0], *decode(resumed, 3, 9, 5)] == text[7:]


def test_seeded_text_does_not_depend_on_the_company():
    sampling = SamplingParams(temperature=1.5)
    alone, company = make_runner(), make_runner()
    new = sequence(0, [5, 6], sampling=sampling, seed=3)
    expected = alone.execute(plan(1, [(0, 0, 2, True)], new=[new], new_blocks=rows_blocks(0))).token_ids[0]
    others = [sequence(row, [row, 5], sampling=sampling, seed=row) for row in (1, 2)]
    shares = [(2, 0, 2, True), (0, 0, 2, True), (1, 0, 2, True)]
    result = company.execute(plan(1, shares, new=[new, *others], new_blocks=rows_blocks(0, 1, 2)))
    assert result.token_ids[1] == expected


@pytest.mark.parametrize(("k", "num_entries"), [(0, 1), (3, 4), (-1, VOCAB + 1)])
def test_logprobs_hold_the_sampled_token_first_and_k_more(k, num_entries):
    runner = make_runner()
    new = [sequence(0, [4, 5], sampling=GREEDY.clone(logprobs=k)), sequence(1, [6])]
    result = runner.execute(plan(1, [(1, 0, 1, True), (0, 0, 2, True)], new=new, new_blocks=rows_blocks(0, 1)))
    assert list(result.logprobs) == [1]
    (found,) = result.logprobs[1]
    logits = expected_logits([4, 5]).astype(np.float64)
    logprobs = logits - np.log(np.exp(logits).sum())
    assert len(found.token_ids) == len(found.logprobs) == len(found.ranks) == num_entries
    assert found.token_ids[0] == result.token_ids[1][0]
    assert found.ranks[0] == 1
    assert found.token_ids[1:] == np.argsort(-logits, kind="stable")[: num_entries - 1].tolist()
    np.testing.assert_allclose(found.logprobs, logprobs[found.token_ids], atol=1e-5)


def test_listed_logprobs_take_the_place_of_the_best():
    runner = make_runner()
    new = [sequence(0, [4, 5], sampling=GREEDY.clone(logprobs=5, logprob_token_ids=[9, 2]))]
    result = runner.execute(plan(1, [(0, 0, 2, True)], new=new, new_blocks=rows_blocks(0)))
    assert result.logprobs[0][0].token_ids == [result.token_ids[0][0], 9, 2]


def test_timings_and_planned_work_are_reported():
    cost_model = CostModel(make_spec(), weight_bits=16, kv_itemsize=4)
    runner = make_runner(cost_model=cost_model)
    result = runner.execute(plan(4, [(0, 0, 2, True)], new=[sequence(0, [4, 5])], new_blocks=rows_blocks(0), epoch=6))
    assert (result.step_id, result.epoch) == (4, 6)
    expected = cost_model.step([2], [2], 1)
    assert (result.timings.planned_bytes, result.timings.planned_flops) == (expected.num_bytes, expected.num_flops)
    assert min(result.timings.batch_s, result.timings.forward_s, result.timings.sample_s) > 0
