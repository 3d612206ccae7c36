import json

import pytest
from fakes.hf_folder import BOS, CHAT_TEMPLATE, EOS, byte_level_tokenizer

from octavo.base.errors import LoadError
from octavo.loading.hf_tokenizer import load_hf_tokenizer, read_hf_chat_templates


def _with_unknown_special_token():
    """The tokenizers package panics at the first text."""
    tokenizer = byte_level_tokenizer(320)
    tokenizer["post_processor"]["special_tokens"] = {}
    return tokenizer


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "tokenizer.json", byte_level_tokenizer(320))
    return tmp_path


def write(folder, name, value):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def test_text_round_trips_and_control_tokens_are_known(folder):
    write(folder, "tokenizer_config.json", {"bos_token": BOS, "eos_token": {"content": EOS, "lstrip": False}})
    tokenizer = load_hf_tokenizer(folder)
    ids = tokenizer.encode("the end é")
    assert ids[0] == tokenizer.bos_token_id == 1
    assert tokenizer.decode(ids) == "the end é"
    assert tokenizer.eos_token_id == 2
    assert tokenizer.all_special_ids == [0, 1, 2, 3, 4]
    assert b"".join(tokenizer.id_to_bytes(idx) for idx in ids[1:]) == "the end é".encode()


def test_roles_may_stand_in_the_special_tokens_map(folder):
    write(folder, "special_tokens_map.json", {"eos_token": {"content": EOS}})
    assert load_hf_tokenizer(folder).eos_token_id == 2


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, [1]),
        ({"add_bos_token": True}, [1]),
        ({"add_bos_token": False}, []),
        ({"add_eos_token": True}, [1, 2]),
        ({"add_bos_token": False, "add_eos_token": True}, [2]),
    ],
)
def test_flags_overrule_the_post_processor(folder, flags, expected):
    write(folder, "tokenizer_config.json", {"bos_token": BOS, "eos_token": EOS} | flags)
    assert load_hf_tokenizer(folder).encode("") == expected


def test_truncation_and_padding_of_training_are_forgotten(folder):
    tokenizer = byte_level_tokenizer(320)
    tokenizer["truncation"] = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    write(folder, "tokenizer.json", tokenizer)
    assert load_hf_tokenizer(folder).decode(load_hf_tokenizer(folder).encode("abcdef")) == "abcdef"


def test_tokens_that_only_the_config_lists_are_added(folder):
    token = {"content": "<|new|>", "special": True, "normalized": False}
    write(folder, "tokenizer_config.json", {"added_tokens_decoder": {"320": token, "1": {"content": BOS}}})
    tokenizer = load_hf_tokenizer(folder)
    assert tokenizer.encode("<|new|>", add_special_tokens=False) == [320]
    assert tokenizer.is_special(320)


def test_templates_in_files_come_before_the_config(folder):
    write(folder, "tokenizer_config.json", {"chat_template": CHAT_TEMPLATE})
    assert load_hf_tokenizer(folder).chat_template == CHAT_TEMPLATE
    write(folder, "chat_template.json", {"chat_template": "json"})
    assert load_hf_tokenizer(folder).chat_template == "json"
    write(folder, "chat_template.jinja", "jinja")
    write(folder, "additional_chat_templates/tool_use.jinja", "tools")
    assert read_hf_chat_templates(folder) == {"default": "jinja", "tool_use": "tools"}


def test_a_list_of_templates_is_read_by_name(folder):
    named = [{"name": "default", "template": "a"}, {"name": "rag", "template": "b"}]
    write(folder, "tokenizer_config.json", {"chat_template": named})
    assert read_hf_chat_templates(folder) == {"default": "a", "rag": "b"}


def test_sentencepiece_tokenizers_are_told_by_their_decoder(folder):
    vocab = {"<unk>": 0, "\u2581": 1, "a": 2, "<0x0A>": 3}
    tokenizer = byte_level_tokenizer(320) | {"added_tokens": [], "post_processor": None, "pre_tokenizer": None}
    tokenizer["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}
    tokenizer["model"] |= {"vocab": vocab, "merges": [], "byte_fallback": True, "unk_token": "<unk>"}
    write(folder, "tokenizer.json", tokenizer)
    tokenizer = load_hf_tokenizer(folder)
    assert [tokenizer.id_to_bytes(idx) for idx in range(1, 4)] == [b" ", b"a", b"\n"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tokenizer.json", "{", "not a usable tokenizer"),
        ("tokenizer.json", "[]", "not a usable tokenizer"),
        ("tokenizer.json", {"model": {"type": "BPE"}}, "not a usable tokenizer"),
        ("tokenizer.json", byte_level_tokenizer(320) | {"decoder": None}, "decoder None"),
        ("tokenizer.json", _with_unknown_special_token(), "not a usable tokenizer"),
        ("tokenizer_config.json", "[]", "must be a JSON object"),
        ("tokenizer_config.json", {"bos_token": 3}, "bos_token"),
        ("tokenizer_config.json", {"bos_token": BOS, "add_bos_token": "yes"}, "add_bos_token"),
        ("tokenizer_config.json", {"chat_template": 3}, "chat_template"),
        ("tokenizer_config.json", {"chat_template": [{"name": "default"}]}, "template"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": {}}}, "added_tokens_decoder"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"400": {"content": "new"}}}, "got id 320, not 400"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"400": 3}}, "token 400"),
        ("chat_template.json", {"chat_template": []}, "chat_template"),
    ],
)
def test_a_damaged_file_is_one_error_naming_it(folder, name, value, message):
    write(folder, name, value)
    with pytest.raises(LoadError, match=message):
        load_hf_tokenizer(folder)


def test_a_folder_without_tokenizer_json_is_refused_and_its_code_not_run(folder, tmp_path):
    (folder / "tokenizer.json").unlink()
    (folder / "code.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')")
    write(folder, "tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}})
    with pytest.raises(LoadError, match="never run"):
        load_hf_tokenizer(folder)
    assert not (tmp_path / "marker").exists()
