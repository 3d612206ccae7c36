"""Sampling of the reference back end: each processor, their order, ties, noise, failures."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.sample_batches import pack_bits, sample_batch
from hypothesis import given
from hypothesis import strategies as st

from octavo.kernels.noise import gumbel_noise
from octavo.kernels.reference import ReferenceOps

OPS = ReferenceOps("float32")
VOCAB = 50


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def draw_logits(num_rows: int = 1, seed: int = 0, vocab: int = VOCAB) -> np.ndarray:
    return (2 * np.random.default_rng(seed).standard_normal((num_rows, vocab))).astype(np.float32)


def sample_one(logits: np.ndarray, **values) -> int:
    return int(OPS.sample(np.atleast_2d(logits), sample_batch(1, **values)).token_ids[0])


def drawn_tokens(logits: np.ndarray, count: int = 400, **values) -> set[int]:
    """Distinct tokens that `count` seeds draw."""
    rows = np.repeat(np.atleast_2d(logits), count, axis=0)
    batch = sample_batch(count, **({"temperature": 1.0, "seeds": list(range(count))} | values))
    return set(OPS.sample(rows, batch).token_ids.tolist())


def test_greedy_takes_the_best_and_of_equals_the_lowest_id() -> None:
    assert sample_one(floats(0, 3, 1, 3, 2)) == 1


def test_greedy_ignores_seed_and_filters() -> None:
    logits = draw_logits()
    best = int(logits.argmax())
    assert sample_one(logits, seeds=7, top_k=3, top_p=0.1, min_p=0.9) == best


def test_a_random_row_is_the_arg_max_of_tempered_logit_plus_noise() -> None:
    logits = draw_logits()
    noise = gumbel_noise(1 << 63, 99, np.arange(VOCAB))
    expected = int(np.argmax(logits[0] / np.float32(0.7) + noise))
    assert sample_one(logits, temperature=0.7, seeds=1 << 63, positions=99) == expected


def test_draws_follow_the_softmax() -> None:
    logits = floats(2, 1, 0, -1)
    rows = np.repeat(logits[None], 8_000, axis=0)
    batch = sample_batch(len(rows), temperature=2.0, seeds=4, positions=np.arange(len(rows)))
    shares = np.bincount(OPS.sample(rows, batch).token_ids, minlength=4) / len(rows)
    expected = np.exp(logits / 2) / np.exp(logits / 2).sum()
    np.testing.assert_allclose(shares, expected, atol=0.02)


def test_top_k_keeps_the_k_best_and_of_equals_the_lower_ids() -> None:
    logits = floats(1, 2, 2, 2, 0)
    assert drawn_tokens(logits, top_k=2) == {1, 2}
    assert drawn_tokens(logits, top_k=1) == {1}
    assert drawn_tokens(logits, top_k=100) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.01, {2}), (0.49, {2}), (0.51, {2, 0}), (0.79, {2, 0}), (0.81, {2, 0, 1}), (1.0, {0, 1, 2, 3})],
)
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p: float, kept: set[int]) -> None:
    logits = np.log(floats(0.3, 0.15, 0.5, 0.05))
    assert drawn_tokens(logits, top_p=top_p) == kept


def test_top_p_counts_probabilities_among_the_top_k() -> None:
    logits = np.log(floats(0.3, 0.15, 0.5, 0.05))
    assert drawn_tokens(logits, top_k=2, top_p=0.62) == {2}  # 0.5 / 0.8 = 0.625
    assert drawn_tokens(logits, top_k=2, top_p=0.63) == {2, 0}


def test_min_p_drops_what_is_less_likely_than_a_share_of_the_best() -> None:
    logits = np.log(floats(0.3, 0.15, 0.5, 0.05))
    assert drawn_tokens(logits, min_p=0.2) == {0, 1, 2}
    assert drawn_tokens(logits, min_p=0.5) == {0, 2}
    assert drawn_tokens(logits, min_p=1.0) == {2}


def test_filters_act_on_the_tempered_distribution() -> None:
    logits = np.log(floats(0.3, 0.15, 0.5, 0.05))
    assert drawn_tokens(logits, temperature=0.25, top_p=0.85) == {2}


def test_repetition_penalty_covers_prompt_and_output_and_pushes_both_signs_down() -> None:
    logits = floats(4.0, 3.9, -1.0, -1.5)
    history = (ids(0, 2), ids(2))
    assert sample_one(logits, repetition_penalty=1.1, history=history) == 1
    below = floats(-5, -1.0, -1.5, -9)
    assert sample_one(below, repetition_penalty=2.0, history=(ids(), ids(1))) == 2


def test_frequency_counts_the_output_only_and_presence_counts_once() -> None:
    logits = floats(3.0, 2.5, 2.0, 0.0)
    history = (ids(1, 1, 1, 1), ids(0, 0))
    assert sample_one(logits, frequency_penalty=0.24, history=history) == 0
    assert sample_one(logits, frequency_penalty=0.26, history=history) == 1
    assert sample_one(logits, presence_penalty=0.49, history=history) == 0
    assert sample_one(logits, presence_penalty=0.51, history=history) == 1


def test_bias_and_masks_come_before_the_penalties() -> None:
    logits = floats(3.0, 2.0, 1.0, 0.0)
    assert sample_one(logits, bias=(ids(3), floats(5))) == 3
    assert sample_one(logits, bias=(ids(0, 1), floats(-np.inf, -np.inf))) == 2
    assert sample_one(logits, allowed=ids(1, 3)) == 1
    assert sample_one(logits, allowed=ids(1, 3), bias=(ids(1), floats(-np.inf))) == 3
    # 0 + 5 = 5 is positive, so the penalty divides: 2.5 < 3. Penalized first it would stay 0 and then win with 5.
    assert sample_one(logits, bias=(ids(3), floats(5)), repetition_penalty=2.0, history=(ids(3), ids())) == 0


def test_masked_tokens_are_never_drawn() -> None:
    logits = draw_logits()[0]
    banned = ids(*range(0, VOCAB, 2))
    drawn = drawn_tokens(logits, temperature=5.0, bias=(banned, np.full(len(banned), -np.inf, np.float32)))
    assert drawn
    assert not drawn & set(banned.tolist())
    assert drawn_tokens(logits, temperature=5.0, allowed=ids(4, 9), top_p=0.99, min_p=0.01) <= {4, 9}


def test_the_logits_themselves_are_not_changed() -> None:
    logits = draw_logits()
    before = logits.copy()
    history = (ids(1), ids(2, 2))
    values = {"temperature": 0.5, "top_k": 3, "repetition_penalty": 1.5, "history": history}
    OPS.sample(logits, sample_batch(1, bias=(ids(3), floats(-np.inf)), **values))
    np.testing.assert_array_equal(logits, before)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_a_row_that_is_not_finite_is_reported_and_hurts_no_other(poison: float) -> None:
    logits = draw_logits(3)
    alone = OPS.sample(logits, sample_batch(3, num_logprobs=2))
    logits[1, 7] = poison
    result = OPS.sample(logits, sample_batch(3, num_logprobs=2))
    assert result.finite.tolist() == [True, False, True]
    assert result.logprobs[1] is None
    assert result.token_ids[[0, 2]].tolist() == alone.token_ids[[0, 2]].tolist()


def test_a_logit_of_minus_infinity_is_an_impossible_token_not_a_fault() -> None:
    result = OPS.sample(floats(1, -np.inf, 0)[None], sample_batch(1, num_logprobs=3))
    assert result.finite.all()
    assert result.logprobs[0] is not None
    assert result.logprobs[0][1][-1] == -np.inf


def test_a_row_whose_masks_leave_nothing_is_reported() -> None:
    logits = draw_logits(2)
    nothing = (ids(5), floats(-np.inf))
    result = OPS.sample(logits, sample_batch(2, allowed=[ids(5), None], bias=[nothing, None]))
    assert result.finite.all()
    assert result.exhausted.tolist() == [True, False]


def test_logprobs_are_of_the_raw_logits_and_start_with_the_sampled_token() -> None:
    logits = draw_logits()
    result = OPS.sample(logits, sample_batch(1, temperature=0.5, seeds=3, num_logprobs=4, allowed=ids(6, 8)))
    assert result.logprobs[0] is not None
    token_ids, logprobs, ranks = result.logprobs[0]
    exact = logits[0] - np.log(np.exp(logits[0].astype(np.float64)).sum())
    order = np.argsort(-logits[0])
    assert token_ids[0] == result.token_ids[0]
    assert token_ids[1:].tolist() == order[:4].tolist()
    np.testing.assert_allclose(logprobs, exact[token_ids], rtol=0, atol=1e-5)
    assert ranks.tolist() == [1 + order.tolist().index(token_ids[0]), 1, 2, 3, 4]


def test_logprobs_of_listed_ids_take_the_place_of_the_best() -> None:
    result = OPS.sample(draw_logits(), sample_batch(1, num_logprobs=0, logprob_token_ids=ids(3, 40)))
    assert result.logprobs[0] is not None
    assert result.logprobs[0][0].tolist() == [int(result.token_ids[0]), 3, 40]


def test_rows_that_ask_for_no_logprobs_get_none() -> None:
    result = OPS.sample(draw_logits(2), sample_batch(2, num_logprobs=[-1, 0]))
    assert result.logprobs[0] is None
    assert result.logprobs[1] is not None
    assert len(result.logprobs[1][0]) == 1


@given(
    num_rows=st.integers(1, 6),
    seed=st.integers(0, 1000),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    top_k=st.sampled_from([0, 1, 5]),
    top_p=st.sampled_from([1.0, 0.9, 0.3]),
    min_p=st.sampled_from([0.0, 0.1]),
)
def test_a_row_gets_the_same_bits_alone_and_in_a_batch(
    num_rows: int, seed: int, temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    logits = draw_logits(num_rows, seed, vocab=3000)
    values = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "num_logprobs": 3}
    seeds = [seed + row for row in range(num_rows)]
    together = OPS.sample(logits, sample_batch(num_rows, seeds=seeds, positions=seeds, **values))
    for row in range(num_rows):
        batch = sample_batch(1, seeds=seeds[row], positions=seeds[row], **values)
        alone = OPS.sample(logits[row : row + 1], batch)
        assert alone.token_ids[0] == together.token_ids[row]
        for left, right in zip(alone.logprobs[0] or (), together.logprobs[row] or (), strict=True):
            np.testing.assert_array_equal(left, right)


def test_bits_say_which_tokens_may_be_taken() -> None:
    logits = floats(*range(40))[None]
    bits = pack_bits(np.isin(np.arange(40), [3, 33, 35]))
    bias = (ids(35), floats(-np.inf))
    result = OPS.sample(
        np.repeat(logits, 3, axis=0), sample_batch(3, allowed_bits=[bits, bits, None], bias=[None, bias, None])
    )
    assert result.token_ids.tolist() == [35, 33, 39]
    assert not result.exhausted.any()
