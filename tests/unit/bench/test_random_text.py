from __future__ import annotations

import numpy as np
import pytest
from fakes.byte_tokenizer import ByteTokenizer

from octavo.base.errors import ConfigError
from octavo.bench.random_text import RepetitionShape, draw_random_texts, draw_repetitions, ordinary_ids
from octavo.bench.samples import RandomShape

LETTERS = np.arange(97, 123)
"""Bytes that are a text each: their round trip changes nothing."""


class Merging(ByteTokenizer):
    """Encodes "ab" as one token: texts get shorter on the way."""

    def encode(self, text, *, add_special_tokens=True):
        return [300 if piece == "\1" else ord(piece) for piece in text.replace("ab", "\1")]

    def decode(self, ids):
        return "".join("ab" if token_id == 300 else chr(token_id) for token_id in ids)


class Beginning(ByteTokenizer):
    """Begins each text with a token of its own."""

    def encode(self, text, *, add_special_tokens=True):
        return [256] * add_special_tokens + list(text.encode())


def draw(shape, tokenizer=None, *, num_samples=20, seed=0):
    return draw_random_texts(num_samples, shape, tokenizer, token_ids=LETTERS, seed=seed)


def test_special_tokens_are_not_ordinary():
    assert ordinary_ids(ByteTokenizer()).tolist() == list(range(256))


def test_prompts_are_tokens_in_a_row_from_an_offset_as_text():
    for sample in draw(RandomShape(input_len=8, output_len=3), ByteTokenizer()):
        ids = sample.prompt_token_ids
        assert len(ids) == 8
        assert sample.num_output_tokens == 3
        assert sample.text.encode() == bytes(ids)
        assert set(np.diff(ids).tolist()) <= {1, 1 - 26}


def test_the_seed_fixes_the_prompts():
    shape = RandomShape(input_len=8, output_len=3, range_ratio=0.5, prefix_len=2)
    assert draw(shape, ByteTokenizer()) == draw(shape, ByteTokenizer()) != draw(shape, ByteTokenizer(), seed=1)


def test_prefix_and_range_are_kept():
    samples = draw(RandomShape(input_len=10, output_len=10, range_ratio=0.3, prefix_len=5), ByteTokenizer())
    assert len({sample.text[:5] for sample in samples}) == 1
    lengths = {len(sample.prompt_token_ids) for sample in samples}
    assert lengths <= set(range(12, 19))
    assert len(lengths) > 2
    assert {sample.num_output_tokens for sample in samples} <= set(range(7, 14))


def test_a_text_that_gets_shorter_on_the_way_is_filled_up():
    samples = draw(RandomShape(input_len=26, output_len=1), Merging())
    for sample in samples:
        assert sample.prompt_token_ids == Merging().encode(sample.text)
    assert sum(len(sample.prompt_token_ids) == 26 for sample in samples) >= 15


def test_a_begin_token_of_the_server_is_counted():
    samples = draw(RandomShape(input_len=8, output_len=1), Beginning())
    assert {len(sample.prompt_token_ids) for sample in samples} == {7}


def test_without_a_tokenizer_prompts_are_ids():
    (sample,) = draw(RandomShape(input_len=4, output_len=1), num_samples=1)
    assert (len(sample.prompt_token_ids), sample.text) == (4, None)


@pytest.mark.parametrize(
    ("input_len", "ratio", "flag"), [(4, 1.0, "range-ratio"), (4, -0.1, "range-ratio"), (0, 0.0, "len")]
)
def test_lengths_that_leave_nothing_are_refused(input_len, ratio, flag):
    with pytest.raises(ConfigError, match=flag):
        draw(RandomShape(input_len=input_len, output_len=1, range_ratio=ratio))


@pytest.mark.parametrize("tokenizer", [None, ByteTokenizer()])
def test_repetitions_share_as_many_prefixes_as_asked(tokenizer):
    shape = RepetitionShape(prefix_len=6, suffix_len=4, num_prefixes=3, output_len=2)
    samples = draw_repetitions(10, shape, tokenizer, token_ids=LETTERS, seed=0)
    prefixes = [tuple(sample.prompt_token_ids[:6]) for sample in samples]
    assert sorted(prefixes.count(prefix) for prefix in set(prefixes)) == [3, 3, 4]
    assert {(len(sample.prompt_token_ids), sample.num_output_tokens) for sample in samples} == {(10, 2)}
    assert len({tuple(sample.prompt_token_ids) for sample in samples}) == 10
    assert all((sample.text is None) == (tokenizer is None) for sample in samples)


@pytest.mark.parametrize("num_prefixes", [0, 11])
def test_more_prefixes_than_prompts_are_refused(num_prefixes):
    with pytest.raises(ConfigError, match="num-prefixes"):
        draw_repetitions(10, RepetitionShape(num_prefixes=num_prefixes), None, token_ids=LETTERS, seed=0)
