import math

import pytest
from fakes.gguf_file import (
    ARRAY,
    BOOL,
    FLOAT32,
    INT32,
    STRING,
    UINT32,
    GgufBuilder,
    add_tokenizer,
    byte_level_pieces,
)

from octavo.base.errors import LoadError
from octavo.loading.gguf import GgufFile
from octavo.loading.gguf_tokenizer import load_gguf_tokenizer, read_chat_templates
from octavo.loading.pre_tokenizers import BPE_RULES


def byte_level() -> GgufBuilder:
    builder = GgufBuilder()
    add_tokenizer(builder)
    return builder


def sentencepiece(*, add_space_prefix=True, blanks="  ") -> GgufBuilder:
    """unk, bos, eos, a run of blanks (user-defined), the bytes of "ö", then letters and words with scores."""
    pieces = ["<unk>", "<s>", "</s>", blanks, "<0xC3>", "<0xB6>"]
    kinds = [2, 3, 3, 4, 6, 6]
    scores = [0.0, 0.0, 0.0, -1000.0, 0.0, 0.0]
    words = {"\u2581": -10.0, "a": -11.0, "b": -12.0, "ab": -1.0, "\u2581a": -2.0, "\u2581ab": -0.5, "\n": -13.0}
    pieces += words
    kinds += [1] * len(words)
    scores += words.values()
    builder = GgufBuilder()
    builder.add("tokenizer.ggml.model", STRING, "llama")
    builder.add("tokenizer.ggml.tokens", ARRAY, (STRING, pieces))
    builder.add("tokenizer.ggml.token_type", ARRAY, (INT32, kinds))
    builder.add("tokenizer.ggml.scores", ARRAY, (FLOAT32, scores))
    builder.add("tokenizer.ggml.bos_token_id", UINT32, 1)
    builder.add("tokenizer.ggml.eos_token_id", UINT32, 2)
    builder.add("tokenizer.ggml.unknown_token_id", UINT32, 0)
    builder.add("tokenizer.ggml.add_space_prefix", BOOL, add_space_prefix)
    return builder


def load(builder, tmp_path):
    return load_gguf_tokenizer(GgufFile(builder.write(tmp_path / "model.gguf")))


def texts(tokenizer, ids):
    return [tokenizer.token_text(idx) for idx in ids]


def test_byte_level_text_round_trips_with_merges_and_control_tokens(tmp_path):
    tokenizer = load(byte_level(), tmp_path)
    ids = tokenizer.encode("<|im_start|>hehö\n")
    assert texts(tokenizer, ids)[:3] == ["<|im_start|>", "he", "h"]
    assert tokenizer.decode(ids) == "hehö\n"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "<|im_start|>hehö\n"
    assert b"".join(tokenizer.id_to_bytes(idx) for idx in ids[1:]) == "hehö\n".encode()
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.all_special_ids) == (1, 2, [0, 1, 2])


@pytest.mark.parametrize("pre", BPE_RULES)
def test_every_known_way_to_cut_round_trips(tmp_path, pre):
    tokenizer = load(byte_level().add("tokenizer.ggml.pre", STRING, pre), tmp_path)
    text = "he's 1234 años, ¿no?\n\n\t end  "
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(("add_bos", "add_eos"), [(True, False), (False, True), (True, True), (False, False)])
def test_begin_and_end_tokens_are_added_as_the_file_says(tmp_path, add_bos, add_eos):
    builder = byte_level().add("tokenizer.ggml.add_bos_token", BOOL, add_bos)
    tokenizer = load(builder.add("tokenizer.ggml.add_eos_token", BOOL, add_eos), tmp_path)
    plain = tokenizer.encode("he", add_special_tokens=False)
    assert tokenizer.encode("he") == [1] * add_bos + plain + [2] * add_eos


def test_sentencepiece_merges_by_score_and_falls_back_to_bytes(tmp_path):
    tokenizer = load(sentencepiece(), tmp_path)
    ids = tokenizer.encode("ab ö")
    assert texts(tokenizer, ids) == ["<s>", " ab", " ", "\ufffd", "\ufffd"]
    assert tokenizer.decode(ids) == "ab ö"
    assert [tokenizer.id_to_bytes(idx) for idx in ids[3:]] == [b"\xc3", b"\xb6"]


def test_the_blank_in_front_is_optional(tmp_path):
    with_blank, without = load(sentencepiece(), tmp_path), load(sentencepiece(add_space_prefix=False), tmp_path)
    assert texts(with_blank, with_blank.encode("ab", add_special_tokens=False)) == [" ab"]
    assert texts(without, without.encode("ab", add_special_tokens=False)) == ["ab"]
    assert without.decode(without.encode(" ab")) == " ab"


def test_runs_of_blanks_are_one_piece_whatever_their_score(tmp_path):
    tokenizer = load(sentencepiece(add_space_prefix=False), tmp_path)
    assert texts(tokenizer, tokenizer.encode("b  b", add_special_tokens=False)) == ["b", "  ", "b"]


def test_the_unknown_piece_is_special(tmp_path):
    tokenizer = load(sentencepiece(), tmp_path)
    assert tokenizer.is_special(0)
    assert tokenizer.encode("z", add_special_tokens=False)[-1] == 0


def test_named_templates_are_kept_apart(tmp_path):
    builder = byte_level().add("tokenizer.chat_template.tool_use", STRING, "tools")
    file = GgufFile(builder.write(tmp_path / "model.gguf"))
    assert set(read_chat_templates(file)) == {"default", "tool_use"}


@pytest.mark.parametrize(
    ("key", "kind", "value", "message"),
    [
        ("tokenizer.ggml.model", STRING, "rwkv", "'rwkv' is not supported"),
        ("tokenizer.ggml.pre", STRING, "tekken", "'tekken' is not a known pre-tokenizer"),
        ("tokenizer.ggml.pre", STRING, "default", "'default' is not a known pre-tokenizer"),
        ("tokenizer.ggml.tokens", STRING, "x", "tokens.*array of strings"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, ["a", "a", *byte_level_pieces()[2:]]), "same piece twice"),
        ("tokenizer.ggml.token_type", ARRAY, (INT32, [1]), "token_type"),
        ("tokenizer.ggml.token_type", ARRAY, (FLOAT32, [1.0] * 260), "token_type"),
        ("tokenizer.ggml.merges", ARRAY, (STRING, ["he"]), "merges.*'he'"),
        ("tokenizer.ggml.merges", ARRAY, (STRING, ["h zzz"]), "not a usable tokenizer"),
        ("tokenizer.ggml.bos_token_id", UINT32, 260, "bos_token_id"),
        ("tokenizer.ggml.add_bos_token", UINT32, 1, "add_bos_token"),
        ("tokenizer.chat_template", UINT32, 1, "chat_template"),
    ],
)
def test_a_key_that_makes_no_tokenizer_is_named(tmp_path, key, kind, value, message):
    with pytest.raises(LoadError, match=message):
        load(byte_level().add(key, kind, value), tmp_path)


@pytest.mark.parametrize("key", ["model", "pre", "tokens", "merges"])
def test_a_missing_key_is_named(tmp_path, key):
    with pytest.raises(LoadError, match=f"tokenizer.ggml.{key}' is missing"):
        load(byte_level().drop(f"tokenizer.ggml.{key}"), tmp_path)


@pytest.mark.parametrize("scores", [[1.0], [math.nan] * 13])
def test_scores_must_be_numbers_one_a_piece(tmp_path, scores):
    with pytest.raises(LoadError, match="scores"):
        load(sentencepiece().add("tokenizer.ggml.scores", ARRAY, (FLOAT32, scores)), tmp_path)
