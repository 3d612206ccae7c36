"""The detokenizer on real vocabularies: what it shows, joined, is what the tokenizer decodes."""

from __future__ import annotations

import pytest
from fakes.hf_folder import write_hf_folder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.engine.output.detokenize import IncrementalDetokenizer
from octavo.loading import open_checkpoint

TEXTS = [
    "Hello, world",
    "  two spaces",
    "naïve café",
    "你好，世界",
    "🙂👩‍👩‍👧",
    "a\u0301\n\ttab",
    "\ufffd kept",
    "العربية",
    "",
]
PROPERTY = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


def load(path):
    with open_checkpoint(path) as checkpoint:
        return checkpoint.load_tokenizer()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return load(write_hf_folder(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def smollm2(smollm2_path):
    return load(smollm2_path)


@pytest.fixture(scope="module")
def gemma(gemma_path):
    return load(gemma_path)


def joined(tokenizer, ids, *, skip):
    detokenizer = IncrementalDetokenizer(tokenizer, skip_special_tokens=skip)
    return "".join([*(detokenizer.feed([token_id]) for token_id in ids), detokenizer.flush()])


def check_ids(tokenizer, ids, skip):
    assert joined(tokenizer, ids, skip=skip) == tokenizer.decode(ids, skip_special_tokens=skip)


def check_texts(tokenizer):
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert joined(tokenizer, ids, skip=True) == text


@given(ids=st.lists(st.integers(0, 319), max_size=30), skip=st.booleans())
@PROPERTY
def test_any_ids_of_a_byte_level_vocabulary(tiny, ids, skip):
    check_ids(tiny, ids, skip)


@pytest.mark.needs_smollm2
@given(ids=st.lists(st.integers(0, 49151), max_size=20), skip=st.booleans())
@PROPERTY
def test_any_ids_of_smollm2(smollm2, ids, skip):
    check_ids(smollm2, ids, skip)


@pytest.mark.needs_smollm2
def test_texts_come_back_from_smollm2(smollm2):
    check_texts(smollm2)


@pytest.mark.slow
def test_texts_come_back_from_gemma(gemma):
    check_texts(gemma)


@pytest.mark.slow
@given(ids=st.lists(st.integers(0, 262143), max_size=20), text=st.sampled_from(TEXTS), skip=st.booleans())
@PROPERTY
def test_ids_of_a_vocabulary_with_byte_fallback(gemma, ids, text, skip):
    """Byte tokens that are no UTF-8 are left to the test of the specification below."""
    words = [i for i in ids if not gemma.token_text(i).endswith("\ufffd")]
    check_ids(gemma, words + gemma.encode(text, add_special_tokens=False) + words[::-1], skip)


@pytest.mark.slow
@given(data=st.binary(max_size=12))
@PROPERTY
def test_byte_tokens_read_as_utf8_wherever_they_are_cut(gemma, data):
    byte_ids = {gemma.id_to_bytes(i): i for i in range(300) if gemma.id_to_bytes(i) and len(gemma.id_to_bytes(i)) == 1}
    ids = [byte_ids[bytes([byte])] for byte in data if bytes([byte]) in byte_ids]
    kept = b"".join(gemma.id_to_bytes(i) for i in ids)
    assert joined(gemma, ids, skip=True) == kept.decode("utf-8", "replace")
