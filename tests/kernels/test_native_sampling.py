"""Sampling and logprobs of the native back end against the reference, row by row."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.native import LEVELS, draw, each_level, native_ops
from fakes.sample_batches import pack_bits, sample_batch
from hypothesis import given
from hypothesis import strategies as st

from octavo.base.errors import ShapeError
from octavo.kernels.ops import SampleBatch, SampleResult
from octavo.kernels.reference import ReferenceOps

REFERENCE = ReferenceOps("float32")


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def assert_same(found: SampleResult, expected: SampleResult) -> None:
    np.testing.assert_array_equal(found.finite, expected.finite)
    np.testing.assert_array_equal(found.exhausted, expected.exhausted)
    np.testing.assert_array_equal(found.token_ids, expected.token_ids)
    for own, other in zip(found.logprobs, expected.logprobs, strict=True):
        assert (own is None) == (other is None)
        if own is not None and other is not None:
            np.testing.assert_array_equal(own[0], other[0])
            np.testing.assert_allclose(own[1], other[1], rtol=0, atol=5e-6)
            np.testing.assert_array_equal(own[2], other[2])


def check(isa: str, logits: np.ndarray, batch: SampleBatch) -> SampleResult:
    found = native_ops("float32", isa).sample(logits, batch)
    assert_same(found, REFERENCE.sample(logits, batch))
    return found


def draw_batch(rng: np.random.Generator, num_rows: int, vocab: int) -> SampleBatch:
    """Rows of every kind: greedy and random, any mix of filters, penalties, biases, masks and logprobs."""

    def pick(*values):
        return rng.choice(values, num_rows)

    def some(make):
        return [make() if rng.random() < 0.4 else None for _ in range(num_rows)]

    def tokens(most: int) -> np.ndarray:
        return rng.integers(0, vocab, rng.integers(0, most + 1)).astype(np.int32)

    def bias():
        token_ids = np.unique(tokens(20))
        return token_ids, rng.choice([-np.inf, -3.0, 2.5], len(token_ids)).astype(np.float32)

    return sample_batch(
        num_rows,
        temperature=pick(0.0, 0.2, 0.8, 1.0, 3.0),
        top_k=pick(0, 1, 7, 50, vocab, vocab + 5),
        top_p=pick(1.0, 0.95, 0.5, 0.01),
        min_p=pick(0.0, 0.0, 0.05, 0.5),
        repetition_penalty=pick(1.0, 1.0, 1.3, 0.7),
        frequency_penalty=pick(0.0, 0.5, -0.5),
        presence_penalty=pick(0.0, 0.7),
        seeds=rng.integers(0, 2**64, num_rows, np.uint64),
        positions=rng.integers(0, 2**40, num_rows),
        num_logprobs=pick(-1, 0, 3, 40),
        history=some(lambda: (tokens(30), tokens(30))),
        bias=some(bias),
        allowed=some(lambda: np.unique(np.append(tokens(40), np.int32(3)))),
        allowed_bits=some(lambda: pack_bits(rng.random(vocab) < rng.choice([0.02, 0.5, 1.0]))),
        logprob_token_ids=some(lambda: tokens(5)),
    )


@given(seed=st.integers(0, 10**6), vocab=st.sampled_from([9, 64, 65, 1000, 3001]), isa=st.sampled_from(LEVELS))
def test_rows_of_every_kind_are_sampled_as_by_the_reference(seed: int, vocab: int, isa: str) -> None:
    rng = np.random.default_rng(seed)
    logits = (3 * rng.standard_normal((6, vocab))).astype(np.float32)
    check(isa, logits, draw_batch(rng, 6, vocab))


@each_level
def test_equal_logits_fall_to_the_lowest_id(isa: str) -> None:
    rng = np.random.default_rng(0)
    # Few distinct values, so that every border of top-k and of the best tokens runs through a tie.
    logits = rng.integers(-2, 3, (40, 300)).astype(np.float32)
    seeds = list(range(40))
    check(isa, logits, sample_batch(40, num_logprobs=20))
    check(isa, logits, sample_batch(40, temperature=1.0, seeds=seeds, top_k=pick_each(40), num_logprobs=2))
    check(isa, logits, sample_batch(40, temperature=1.0, seeds=seeds, top_p=0.3))
    check(isa, logits, sample_batch(40, temperature=1.0, seeds=seeds, min_p=0.5))
    assert native_ops("float32", isa).sample(np.zeros((1, 77), np.float32), sample_batch(1)).token_ids[0] == 0


def pick_each(num_rows: int) -> list[int]:
    return [1 + row for row in range(num_rows)]


@each_level
def test_a_whole_vocabulary_is_drawn_from_as_by_the_reference(isa: str) -> None:
    logits = draw(12, 49152, scale=3.0)
    values = {"temperature": 0.9, "seeds": list(range(12)), "positions": list(range(12)), "num_logprobs": 5}
    check(isa, logits, sample_batch(12, **values))
    check(isa, logits, sample_batch(12, **values, top_p=0.9))
    check(isa, logits, sample_batch(12, **values, top_k=50, top_p=0.9))


@each_level
@pytest.mark.parametrize("flat", [0.0, 1e-3])
def test_nearly_flat_logits_keep_their_mass(isa: str, flat: float) -> None:
    logits = draw(4, 5000, scale=flat)
    check(isa, logits, sample_batch(4, temperature=1.0, seeds=[1, 2, 3, 4], top_k=1000, min_p=0.2))
    kept = native_ops("float32", isa).sample(
        np.repeat(logits[:1], 300, axis=0), sample_batch(300, temperature=1.0, seeds=list(range(300)), top_p=0.5)
    )
    best_half = np.argsort(-logits[0], kind="stable")[:2501]
    assert set(kept.token_ids.tolist()) <= set(best_half.tolist())


@each_level
@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 31, 64, 99])
def test_a_row_that_is_not_finite_is_reported_and_hurts_no_other(isa: str, poison: float, place: int) -> None:
    logits = draw(3, 100)
    logits[1, place] = poison
    result = check(isa, logits, sample_batch(3, num_logprobs=2))
    assert result.finite.tolist() == [True, False, True]


@each_level
def test_rows_with_nothing_left_and_impossible_tokens(isa: str) -> None:
    logits = draw(3, 20)
    logits[0, 4:] = -np.inf
    logits[2] = -np.inf
    banned = (ids(*range(20)), np.full(20, -np.inf, np.float32))
    values = {"num_logprobs": 6, "temperature": [1.0, 1.0, 0.0]}
    result = native_ops("float32", isa).sample(logits, sample_batch(3, bias=[None, banned, None], **values))
    assert result.finite.tolist() == [True, True, True]
    assert result.exhausted.tolist() == [False, True, True]
    assert result.token_ids[0] < 4
    assert result.logprobs[0] is not None
    assert result.logprobs[0][1][-1] == -np.inf


@each_level
@pytest.mark.parametrize("vocab", [1, 31, 32, 33, 63, 100, 3001])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.97, 1.0])
def test_only_tokens_whose_bit_is_set_are_taken(isa: str, vocab: int, share: float) -> None:
    rng = np.random.default_rng(vocab)
    logits = draw(4, vocab)
    masks = [rng.random(vocab) < share for _ in range(3)]
    bits = [*map(pack_bits, masks), None]
    for words in bits[:3]:
        if vocab % 32:
            words[-1] |= np.int32(-1) << (vocab % 32)  # bits behind the vocabulary say nothing
    result = check(
        isa, logits, sample_batch(4, temperature=[0.0, 1.0, 0.7, 0.0], seeds=[1, 2, 3, 4], allowed_bits=bits)
    )
    for row, mask in enumerate(masks):
        assert result.exhausted[row] == (not mask.any())
        assert result.exhausted[row] or mask[result.token_ids[row]]
    exact = np.where(masks[0], logits[0].astype(np.float64), -np.inf)
    assert result.exhausted[0] or result.token_ids[0] == np.argmax(exact)


@each_level
def test_a_mask_and_the_other_lists_hold_together(isa: str) -> None:
    logits = np.arange(64, dtype=np.float32)[None]
    odd = pack_bits(np.arange(64) % 2 == 1)
    bias = (ids(63, 62), np.array([-np.inf, 100.0], np.float32))
    result = check(isa, logits, sample_batch(1, allowed_bits=odd, bias=bias, allowed=ids(1, 2, 59, 60, 62, 63)))
    assert result.token_ids.tolist() == [59]


@each_level
def test_a_row_gets_the_same_bits_alone_and_in_a_batch(isa: str) -> None:
    ops, rng = native_ops("float32", isa), np.random.default_rng(5)
    logits = (3 * rng.standard_normal((9, 3000))).astype(np.float32)
    values = {"temperature": 0.8, "top_k": [0, 5, 0] * 3, "top_p": [1.0, 0.9, 0.8] * 3, "num_logprobs": 3}
    together = ops.sample(logits, sample_batch(9, seeds=list(range(9)), **values))
    for row in range(9):
        own = {name: value[row] if isinstance(value, list) else value for name, value in values.items()}
        alone = ops.sample(logits[row : row + 1], sample_batch(1, seeds=row, **own))
        assert alone.token_ids[0] == together.token_ids[row]
        for left, right in zip(alone.logprobs[0] or (), together.logprobs[row] or (), strict=True):
            np.testing.assert_array_equal(left, right)


@each_level
@pytest.mark.parametrize("vocab", [1, 7, 1024, 1025, 49152])
@pytest.mark.parametrize("shift", [0.0, 300.0, -300.0])
def test_logprobs_are_exact_to_float32_wherever_the_logits_lie(isa: str, vocab: int, shift: float) -> None:
    logits = draw(1, vocab, scale=5.0) + np.float32(shift)
    [(token_ids, logprobs, ranks)] = native_ops("float32", isa).token_logprobs(logits, ids(vocab - 1), 3)
    wide = logits[0].astype(np.float64)
    exact = wide - wide.max() - np.log(np.exp(wide - wide.max()).sum())
    np.testing.assert_allclose(logprobs, exact[token_ids], rtol=0, atol=4e-6 + abs(shift) * 2.0**-23)
    assert token_ids[0] == vocab - 1
    assert ranks[0] == 1 + np.count_nonzero(wide > wide[-1])


def test_the_logits_themselves_are_not_changed() -> None:
    logits = draw(2, 50)
    before = logits.copy()
    history = (ids(1), ids(2, 2))
    batch = sample_batch(2, temperature=0.5, top_k=3, repetition_penalty=1.5, history=history, allowed=ids(1, 2, 3))
    native_ops("float32").sample(logits, batch)
    np.testing.assert_array_equal(logits, before)


def test_hostile_batches_are_refused_by_name() -> None:
    ops, logits = native_ops("float32"), draw(2, 50)
    with pytest.raises(ShapeError, match="R is 2 in logits but 3"):
        ops.sample(logits, sample_batch(3))
    with pytest.raises(ShapeError, match="allowed holds 50, which is not below V = 50"):
        ops.sample(logits, sample_batch(2, allowed=ids(50)))
    with pytest.raises(ShapeError, match="history holds -1"):
        ops.sample(logits, sample_batch(2, history=(ids(-1), ids())))
    with pytest.raises(ShapeError, match="bias is 2 in ids but 1 in values"):
        ops.sample(logits, sample_batch(2, bias=(ids(1, 2), np.zeros(1, np.float32))))
    with pytest.raises(ShapeError, match=r"ceil\(V / 32\) is 2 in logits but 1 in allowed_bits"):
        ops.sample(logits, sample_batch(2, allowed_bits=ids(1)))
    with pytest.raises(ShapeError, match="token_ids holds 99"):
        ops.token_logprobs(logits, ids(99, 0), 1)
    with pytest.raises(TypeError):
        ops.sample(logits.astype(np.float64), sample_batch(2))
