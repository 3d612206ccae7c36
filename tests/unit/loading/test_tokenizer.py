import json

import pytest
import tokenizers
from fakes.hf_folder import write_hf_folder
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from octavo.base.errors import ValidationError
from octavo.loading.opening import open_checkpoint
from octavo.loading.tokenizer import PieceEncoding, Tokenizer, byte_level_alphabet


@pytest.fixture
def tokenizer():
    """256 bytes, a control token and a plain added one; the byte 0xFF is missing."""
    alphabet = byte_level_alphabet()
    chars = [char for char, byte in sorted(alphabet.items(), key=lambda item: item[1]) if byte != 0xFF]
    backend = tokenizers.Tokenizer(models.BPE(vocab={char: idx for idx, char in enumerate(chars)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens([AddedToken("<|end|>", special=True), AddedToken("日 本")])
    return Tokenizer(
        backend,
        encoding=PieceEncoding.BYTE_LEVEL,
        special_tokens={"eos_token": "<|end|>"},
        chat_templates={"default": "{{ messages[0].content }}{{ eos_token }}"},
    )


def test_the_alphabet_has_a_character_for_each_byte():
    alphabet = byte_level_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    assert (alphabet["A"], alphabet["\u0120"], alphabet["\u010a"]) == (ord("A"), ord(" "), ord("\n"))


def test_bytes_joined_are_the_text(tokenizer):
    text = "héllo 日本\t🙂"
    ids = tokenizer.encode(text)
    assert b"".join(tokenizer.id_to_bytes(idx) for idx in ids) == text.encode()
    assert tokenizer.decode(ids) == text


def test_an_added_token_that_is_plain_text_is_its_own_bytes(tokenizer):
    (idx,) = tokenizer.encode("日 本")
    assert tokenizer.id_to_bytes(idx) == "日 本".encode()
    assert tokenizer.token_text(idx) == "日 本"


def test_part_of_a_character_shows_as_replacement(tokenizer):
    assert tokenizer.token_text(tokenizer.encode("é")[0]) == "\ufffd"


@pytest.mark.parametrize("idx", [-1, 257, 10**9])
def test_ids_outside_the_vocabulary_have_no_bytes(tokenizer, idx):
    assert tokenizer.id_to_bytes(idx) is None
    assert tokenizer.token_text(idx) == ""


def test_special_tokens_are_known_and_skipped(tokenizer):
    eos = tokenizer.eos_token_id
    assert eos == 255
    assert tokenizer.is_special(eos)
    assert not tokenizer.is_special(65)
    assert tokenizer.all_special_ids == [eos]
    assert tokenizer.bos_token_id is None
    assert tokenizer.decode([65, eos]) == "A"
    assert tokenizer.decode([65, eos], skip_special_tokens=False) == "A<|end|>"
    assert tokenizer.vocab_size == 257


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", 7])
def test_text_that_is_no_unicode_is_the_requests_fault(tokenizer, text):
    with pytest.raises(ValidationError, match="prompt"):
        tokenizer.encode(text)


def test_a_conversation_becomes_text_or_ids(tokenizer):
    messages = [{"role": "user", "content": "hi"}]
    assert tokenizer.apply_chat_template(messages) == "hi<|end|>"
    assert tokenizer.apply_chat_template(messages, tokenize=True) == tokenizer.encode("hi<|end|>")


def test_a_vocabulary_whose_pattern_gives_up_on_a_text_refuses_that_text(tmp_path):
    folder = write_hf_folder(tmp_path / "tiny")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"Regex": "(a+)+$"},
        "behavior": "Isolated",
        "invert": False,
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with open_checkpoint(folder) as checkpoint:
        tokenizer = checkpoint.load_tokenizer()
    with pytest.raises(ValidationError, match="the tokenizer fails on it"):
        tokenizer.encode("a" * 40 + "b")
