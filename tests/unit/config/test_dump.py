import pytest
from fakes.model_facts import llama_facts, machine_facts
from hypothesis import given
from hypothesis import strategies as st

from octavo.base.errors import ConfigError
from octavo.config.dump import dump_config
from octavo.config.load import load_config
from octavo.config.resolve import resolve

CASES = [
    {},
    {"max_model_len": "1k", "kv_cache_memory_bytes": "100M", "dtype": "float32"},
    {"num_gpu_blocks_override": 77, "block_size": 64},
    {"async_scheduling": True},
    {"max_concurrent_steps": 3, "scheduling_policy": "priority"},
    {"enable_chunked_prefill": False, "enable_prefix_caching": False},
    {"override_generation_config": {"temperature": 0.5, "stop": ["a: b", "#"]}, "served_model_name": ["a", "no", "1"]},
    {"model": "folder with: colon #1", "chat_template": "{% for m in messages %}\n{{ m }}\n{% endfor %}"},
    {"prefix_hash_key": "null", "revision": "1e3", "tokenizer": "~"},
    {"served_model_name": ["["]},
    {"served_model_name": ['["a"]']},
    {"served_model_name": ["a b", " c"]},
    {"hf_token": "secret-token"},
]


def replay(config, tmp_path):
    path = tmp_path / "printed.yaml"
    path.write_text(dump_config(config), encoding="utf-8")
    return resolve(load_config({}, config_file=path, env={}), llama_facts(), machine_facts())


@pytest.mark.parametrize("given", CASES[:-1])
def test_a_printed_configuration_replays(given, tmp_path):
    config = resolve(load_config(given, env={}), llama_facts(), machine_facts())
    assert replay(config, tmp_path) == config


def test_what_is_printed_for_a_server_replays_in_a_server(tmp_path):
    config = resolve(load_config({}, usage="server", env={}), llama_facts(), machine_facts())
    path = tmp_path / "printed.yaml"
    path.write_text(dump_config(config), encoding="utf-8")
    assert resolve(load_config({}, usage="server", config_file=path, env={}), llama_facts(), machine_facts()) == config


def test_secrets_are_not_printed():
    config = resolve(load_config({"hf_token": "secret-token"}, env={}), llama_facts(), machine_facts())
    assert "secret" not in dump_config(config)


def test_the_memory_budget_heads_the_file():
    config = resolve(load_config({}, env={}), llama_facts(), machine_facts())
    assert dump_config(config).splitlines()[0] == f"# memory: {config.budget}"


@given(
    texts=st.dictionaries(
        st.sampled_from(["model", "tokenizer", "revision", "prefix_hash_key", "chat_template"]),
        st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1),
    ),
    num_seqs=st.integers(1, 300),
)
def test_any_text_survives_the_trip(texts, num_seqs, tmp_path_factory):
    asked = {name: text for name, text in texts.items() if text.strip()}
    try:
        config = resolve(load_config({**asked, "max_num_seqs": num_seqs}, env={}), llama_facts(), machine_facts())
    except ConfigError:
        return
    assert replay(config, tmp_path_factory.mktemp("trip")) == config
