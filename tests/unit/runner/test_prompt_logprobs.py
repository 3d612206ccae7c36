"""Prompt logprobs: same values however the prompt is cut, bounded logits."""

import numpy as np
import pytest
from fakes.fake_model import VOCAB, FakeModel, FakeOps, expected_logits, make_cache_spec
from fakes.plans import GREEDY, blocks_for, plan, sequence

from octavo.runner import ModelRunner
from octavo.runner.prompt_logprobs import MAX_CHUNK, chunk_rows

PROMPT = [(7 * i) % VOCAB for i in range(150)]


def make_runner():
    spec = make_cache_spec(num_blocks=128)
    return ModelRunner(FakeModel(), FakeOps(), spec, max_num_seqs=2, max_model_len=200, max_num_batched_tokens=200)


def run_prompt(chunk: int, *, prompt=PROMPT, num_prompt=None, k: int = 2, known: int = 0, runner=None):
    """All prompt logprobs of a prompt computed `chunk` tokens a step, and the runner."""
    runner = runner or make_runner()
    found, step_id = [], 0
    new = [
        sequence(
            0, prompt, num_prompt=num_prompt, sampling=GREEDY.clone(prompt_logprobs=k), num_prompt_logprobs_known=known
        )
    ]
    blocks = blocks_for(0, 50)
    for start in range(0, len(prompt), chunk):
        count = min(chunk, len(prompt) - start)
        share = (0, start, count, start + count == len(prompt))
        result = runner.execute(plan(step_id, [share], new=new, new_blocks=blocks))
        assert result.failed == {}
        found += result.prompt_logprobs.get(0, [])
        new, blocks, step_id = [], [], step_id + 1
    return found, runner


def test_there_is_one_position_less_than_prompt_tokens():
    found, _ = run_prompt(len(PROMPT))
    assert [position.token_ids[0] for position in found] == PROMPT[1:]


def test_values_are_those_of_the_logits_one_position_before():
    found, _ = run_prompt(len(PROMPT), k=3)
    for place in (0, 1, 70, 148):
        logits = expected_logits(PROMPT[: place + 1]).astype(np.float64)
        logprobs = logits - np.log(np.exp(logits).sum())
        assert found[place].token_ids[1:] == np.argsort(-logits, kind="stable")[:3].tolist()
        np.testing.assert_allclose(found[place].logprobs, logprobs[found[place].token_ids], atol=1e-5)
        assert found[place].ranks[0] == 1 + np.count_nonzero(logits > logits[PROMPT[place + 1]])


@pytest.mark.parametrize("chunk", [1, 2, 16, 63, 64, 65, 149])
def test_values_do_not_depend_on_the_chunk_size(chunk):
    assert run_prompt(chunk)[0] == run_prompt(len(PROMPT))[0]


def test_no_more_than_a_bounded_number_of_logit_rows_exists_at_once():
    _, runner = run_prompt(len(PROMPT))
    assert runner._model.max_logit_rows == MAX_CHUNK


def test_the_bound_follows_the_vocabulary():
    assert chunk_rows(1000) == 64
    assert chunk_rows(262_144) == 16
    assert chunk_rows(10**9) == 1


def test_a_resumed_sequence_repeats_nothing():
    whole, _ = run_prompt(len(PROMPT))
    found, _ = run_prompt(16, known=100)
    assert found == whole[100:]


def test_output_positions_have_no_prompt_logprobs():
    found, _ = run_prompt(16, prompt=PROMPT[:40], num_prompt=20)
    assert len(found) == 19


def test_the_whole_vocabulary_can_be_asked_for():
    found, _ = run_prompt(4, prompt=PROMPT[:4], k=-1)
    assert {len(position.token_ids) for position in found} == {VOCAB + 1}


def test_bad_logits_in_the_prompt_fail_the_entry_alone():
    runner = make_runner()
    runner._model.poison = {5}
    new = [sequence(0, [1, 5, 2], sampling=GREEDY.clone(prompt_logprobs=0)), sequence(1, [3])]
    blocks = [*blocks_for(0, 4), *blocks_for(1, 4)]
    result = runner.execute(plan(1, [(0, 0, 3, True), (1, 0, 1, True)], new=new, new_blocks=blocks))
    assert result.failed[0].kind == "numeric"
    assert "prompt position" in result.failed[0].text
    assert result.prompt_logprobs == {}
    assert result.token_ids[0] == []
    assert len(result.token_ids[1]) == 1
