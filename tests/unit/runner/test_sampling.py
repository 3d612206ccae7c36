"""The sample batch of a step."""

import numpy as np
from fakes.plans import sequence

from octavo.proto.sampling import SamplingParams
from octavo.runner.rows import TokenRows
from octavo.runner.sampling import as_token_logprobs, build_sample_batch
from octavo.runner.sampling_table import SamplingTable


def make_batch(*sequences, rows_idx, positions, masks=None):
    rows = TokenRows(max_num_seqs=4, max_model_len=16, vocab_size=50)
    table = SamplingTable(max_num_seqs=4, vocab_size=50)
    for new in sequences:
        rows.admit(new)
        assert table.admit(new) is None
    return build_sample_batch(np.array(rows_idx, np.int32), np.array(positions, np.int32), rows, table, masks or {})


def test_rows_are_gathered_in_batch_order():
    batch = make_batch(
        sequence(0, [1, 2], sampling=SamplingParams(temperature=0.5, top_k=3), seed=7),
        sequence(2, [3], sampling=SamplingParams(temperature=0.25, logprobs=2), seed=8),
        rows_idx=[2, 0],
        positions=[1, 2],
    )
    assert batch.temperature.tolist() == [0.25, 0.5]
    assert batch.top_k.tolist() == [0, 3]
    assert batch.seeds.tolist() == [8, 7]
    assert batch.positions.tolist() == [1, 2]
    assert batch.num_logprobs.tolist() == [2, -1]
    assert batch.history == batch.bias == batch.allowed == batch.logprob_token_ids == (None, None)
    assert (batch.positions.dtype, batch.seeds.dtype) == (np.int64, np.uint64)


def test_history_counts_replayed_output_as_output():
    batch = make_batch(
        sequence(1, [5, 6, 7, 8], num_prompt=2, sampling=SamplingParams(presence_penalty=1.0)),
        rows_idx=[1],
        positions=[4],
    )
    prompt_ids, output_ids = batch.history[0]
    assert prompt_ids.tolist() == [5, 6]
    assert output_ids.tolist() == [7, 8]


def test_history_stops_before_the_token_being_sampled():
    batch = make_batch(
        sequence(1, [5, 6, 7, 8], num_prompt=2, sampling=SamplingParams(repetition_penalty=2.0)),
        rows_idx=[1],
        positions=[3],
    )
    assert batch.history[0][1].tolist() == [7]


def test_masks_of_special_rows_stand_at_their_place():
    batch = make_batch(
        sequence(0, [1]),
        sequence(
            3, [1], sampling=SamplingParams(allowed_token_ids=[4, 2], logit_bias={9: 1}, logprob_token_ids=[8, 7])
        ),
        rows_idx=[0, 3],
        positions=[1, 1],
    )
    assert batch.allowed[0] is batch.bias[0] is batch.logprob_token_ids[0] is None
    assert batch.allowed[1].tolist() == [2, 4]
    assert batch.bias[1][0].tolist() == [9]
    assert batch.logprob_token_ids[1].tolist() == [8, 7]
    assert batch.history == (None, None)


def test_logprobs_become_plain_lists():
    found = as_token_logprobs(
        (np.array([3, 1], np.int32), np.array([-0.5, -1], np.float32), np.array([2, 1], np.int32))
    )
    assert (found.token_ids, found.logprobs, found.ranks) == ([3, 1], [-0.5, -1.0], [2, 1])
    assert type(found.ranks[0]) is int


def test_masks_stand_at_the_places_they_are_given_for():
    mask = np.array([5, -1], np.int32)
    batch = make_batch(sequence(0, [1]), sequence(2, [3]), rows_idx=[2, 0], positions=[1, 1], masks={1: mask})
    assert batch.allowed_bits[0] is None
    assert batch.allowed_bits[1] is mask
    assert make_batch(sequence(0, [1]), rows_idx=[0], positions=[1]).allowed_bits == (None,)
