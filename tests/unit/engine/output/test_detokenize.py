"""The pieces joined are the text of all ids, and nothing shown is ever taken back."""

from __future__ import annotations

import pytest
from fakes.byte_tokenizer import EOS, MARK, ByteTokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.engine.output.detokenize import IncrementalDetokenizer

TEXTS = st.text(alphabet="aé你🙂‍👩‍👩‍👧\u0301\ufffd \n", max_size=8)
ANY_IDS = st.one_of(
    st.lists(st.integers(0, 257), max_size=24),
    st.lists(st.sampled_from([0xE4, 0xBD, 0xA0, 0xF0, 0x9F, 0x41, 0xFF, 0x80, EOS, MARK]), max_size=24),
    TEXTS.map(lambda text: list(text.encode())),
)


def pieces_of(ids, sizes, tokenizer, **options):
    detokenizer = IncrementalDetokenizer(tokenizer, **options)
    pieces, rest = [], list(ids)
    for size in sizes:
        pieces.append(detokenizer.feed(rest[:size]))
        rest = rest[size:]
    pieces += [detokenizer.feed([token_id]) for token_id in rest]
    return [*pieces, detokenizer.flush()]


@given(ids=ANY_IDS, sizes=st.lists(st.integers(0, 4), max_size=6), skip=st.booleans())
@settings(deadline=None, max_examples=300)
def test_pieces_joined_are_the_decoded_ids(ids, sizes, skip):
    tokenizer = ByteTokenizer()
    pieces = pieces_of(ids, sizes, tokenizer, skip_special_tokens=skip)
    assert "".join(pieces) == tokenizer.decode(ids, skip_special_tokens=skip)


@given(text=TEXTS)
@settings(deadline=None)
def test_valid_text_is_never_shown_as_a_replacement_character(text):
    shown = ""
    for piece in pieces_of(text.encode(), [], ByteTokenizer()):
        shown += piece
        assert text.startswith(shown)
    assert shown == text


def test_an_incomplete_character_is_kept_back_until_it_is_complete():
    detokenizer = IncrementalDetokenizer(ByteTokenizer())
    assert [detokenizer.feed([byte]) for byte in "你".encode()] == ["", "", "你"]


def test_an_incomplete_character_at_the_end_becomes_one_replacement():
    detokenizer = IncrementalDetokenizer(ByteTokenizer())
    assert detokenizer.feed([0xF0, 0x9F]) == ""
    assert detokenizer.flush() == "\ufffd"


def test_a_skipped_special_token_does_not_break_a_character():
    tokenizer = ByteTokenizer()
    assert "".join(pieces_of([0xE4, EOS, 0xBD, 0xA0], [], tokenizer)) == "你"
    kept = pieces_of([0xE4, MARK, 0x41], [], tokenizer, skip_special_tokens=False)
    assert "".join(kept) == "\ufffd<mark>A"


def test_ids_outside_the_vocabulary_have_no_text():
    assert "".join(pieces_of([0x41, 5000, 0x42], [], ByteTokenizer())) == "AB"


class DummyPrefixTokenizer(ByteTokenizer):
    """Takes one space off the start of every text, as SentencePiece models with a dummy prefix do."""

    def decode(self, ids, *, skip_special_tokens=True):
        return super().decode(ids, skip_special_tokens=skip_special_tokens).removeprefix(" ")


@pytest.mark.parametrize("text", [" Paris", "Paris", "  two", " ", ""])
def test_a_dummy_prefix_is_taken_off_once(text):
    tokenizer = DummyPrefixTokenizer()
    ids = list(text.encode())
    assert "".join(pieces_of([MARK, *ids], [], tokenizer)) == tokenizer.decode(ids)
