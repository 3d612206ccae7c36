import os

import pytest

from octavo.base.errors import ConfigError
from octavo.config.load import load_config
from octavo.config.schema import EngineConfig


def problems_of(given, **sources):
    sources.setdefault("env", {})
    with pytest.raises(ConfigError) as caught:
        load_config(given, **sources)
    return [str(problem) for problem in caught.value.problems]


def write(tmp_path, text):
    path = tmp_path / "engine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_nothing_given_is_the_default_configuration():
    assert load_config({}, env={}) == EngineConfig()


def test_flags_win_over_environment_over_file_over_default(tmp_path):
    path = write(tmp_path, "max_model_len: 1k\nblock-size: 64\nseed: 1\nmax-num-seqs: 5\n")
    env = {"OCTAVO_MAX_MODEL_LEN": "2k", "OCTAVO_BLOCK_SIZE": "128"}
    config = load_config({"max_model_len": "3k"}, config_file=path, env=env)
    assert config.model.max_model_len == 3000
    assert config.cache.block_size == 128
    assert config.scheduler.max_num_seqs == 5
    assert config.model.seed == 1
    assert config.cache.enable_prefix_caching is True


def test_none_means_not_given():
    assert load_config({"max_model_len": None, "quantization": None}, env={"OCTAVO_MAX_MODEL_LEN": "7"}) == load_config(
        {"max_model_len": 7}, env={}
    )


def test_the_environment_of_the_process_is_read_by_default(monkeypatch):
    monkeypatch.setitem(os.environ, "OCTAVO_SEED", "41")
    assert load_config({}).model.seed == 41


def test_all_problems_of_all_sources_come_at_once(tmp_path):
    path = write(tmp_path, "max_num_seq: 8\nblock_size: 7\n")
    problems = problems_of(
        {"dtype": "half", "tensor_parallel_size": 2, "max_model_ln": 5},
        config_file=path,
        env={"OCTAVO_NUM_THREADS": "0", "OCTAVO_MAX_MODEL_LEM": "3"},
    )
    assert len(problems) == 7
    text = "\n".join(problems)
    assert "engine.yaml: max_num_seq=8: is not an option; did you mean max_num_seqs?" in text
    assert "engine.yaml: block_size=7: must be" in text
    assert "OCTAVO_NUM_THREADS='0': must be" in text
    assert "OCTAVO_MAX_MODEL_LEM='3': is not an option; did you mean OCTAVO_MAX_MODEL_LEN?" in text
    assert "dtype='half'" in text
    assert "max_model_ln=5: is not an option; did you mean max_model_len?" in text
    assert "tensor_parallel_size=2" in text


def test_a_name_like_no_other_is_sent_to_the_help():
    assert problems_of({"xyzzy": 1}) == ["xyzzy=1: is not an option; see --help=all"]


def test_variables_of_other_programs_are_left_alone():
    env = {"OCTAVO_SERVICE_HOST": "10.0.0.1", "OCTAVO_PORT_8000_TCP": "tcp://10.0.0.1:8000"}
    assert load_config({}, env=env) == EngineConfig()


def test_names_of_vllm_that_ask_nothing_are_accepted():
    given = {"kv_cache_dtype": "auto", "enable_lora": False, "swap_space": 4, "runner": "generate", "hf_overrides": {}}
    assert load_config(given, env={}) == EngineConfig()


def test_names_of_vllm_that_ask_something_are_refused_with_a_remedy():
    assert problems_of({"quantization": "awq"}) == [
        "quantization='awq': the format is read from the files; leave it out"
    ]


def test_a_secret_is_not_repeated_in_a_problem():
    (problem,) = problems_of({"hf_token": 12345})
    assert "12345" not in problem


def test_usage_is_recorded():
    assert load_config({}, usage="server", env={}).usage == "server"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("a: [1", "is not YAML"),
        ("- 1", "must hold lines"),
        ("just words", "must hold lines"),
        ("1: 2", "must hold lines"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path, text, remedy):
    (problem,) = problems_of({}, config_file=write(tmp_path, text))
    assert remedy in problem


def test_an_empty_file_asks_nothing(tmp_path):
    assert load_config({}, config_file=write(tmp_path, "# nothing\n"), env={}) == EngineConfig()


def test_a_missing_file_is_named(tmp_path):
    (problem,) = problems_of({}, config_file=tmp_path / "none.yaml")
    assert "none.yaml" in problem
    assert "cannot be read" in problem


def test_a_kubernetes_service_named_octavo_does_not_set_the_port():
    env = {"OCTAVO_PORT": "tcp://10.0.0.1:8000", "OCTAVO_SERVICE_PORT": "8000"}
    assert load_config({}, env=env).server.port == 8000


def test_names_may_be_a_json_list_as_vllm_has_them():
    assert load_config({"allowed_origins": '["https://a", "https://b"]'}, env={}).server.allowed_origins == (
        "https://a",
        "https://b",
    )
