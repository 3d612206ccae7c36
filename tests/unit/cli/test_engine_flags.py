import pytest

from octavo.base.errors import ConfigError
from octavo.cli.engine_flags import add_engine_flags, config_from_args, engine_kwargs
from octavo.cli.parser import CommandParser, normalize_argv
from octavo.config.load import load_config
from octavo.config.schema import all_options

EXAMPLES = {"text": "x", "names": "x", "count": "64", "size": "1G", "fraction": "0.5", "json": '{"top_k": 1}'}


def parse(*argv):
    parser = CommandParser(prog="octavo try")
    parser.add_argument("prompt", nargs="*")
    add_engine_flags(parser, usage="server")
    return parser.parse_args(normalize_argv(argv))


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    for option in all_options().values():
        monkeypatch.delenv(option.env_name, raising=False)


@pytest.mark.parametrize("option", all_options().values(), ids=lambda option: option.name)
def test_every_option_has_a_flag(option):
    kind = option.declaration.kind
    if kind == "switch":
        assert engine_kwargs(parse(option.flag)) in ({option.name: True}, {option.name: "true"})
        assert engine_kwargs(parse("--no-" + option.flag[2:])) == {option.name: False}
        return
    value = option.declaration.choices[-1] if kind == "choice" else EXAMPLES[kind]
    assert engine_kwargs(parse(option.flag, value)) == {option.name: [value] if kind == "names" else value}


def test_what_is_not_given_is_not_there():
    assert engine_kwargs(parse("a prompt")) == {}


def test_flags_and_keywords_make_the_same_configuration():
    args = parse("--max_model_len", "8k", "--no-enable-prefix-caching", "-tp", "1", "--served-model-name", "a", "b")
    keywords = {"max_model_len": 8000, "enable_prefix_caching": False, "served_model_name": ["a", "b"]}
    assert config_from_args(args) == load_config(keywords, usage="server", env={})


def test_names_may_be_one_json_list_as_vllm_has_them():
    assert config_from_args(parse("--served-model-name", '["a b", "c"]')).model.served_model_name == ("a b", "c")


def test_the_last_of_two_flags_counts():
    assert config_from_args(parse("--seed=1", "--seed=2")).model.seed == 2
    assert config_from_args(parse("--enforce-eager", "--no-enforce-eager")).kernels.enforce_eager is False


def test_flags_win_over_the_file(tmp_path):
    path = tmp_path / "e.yaml"
    path.write_text("seed: 1\nblock_size: 64\nasync_scheduling: true\n")
    config = config_from_args(parse("--config", str(path), "--seed", "2", "--async-scheduling", "auto"))
    assert (config.model.seed, config.cache.block_size, config.scheduler.async_scheduling) == (2, 64, "auto")


def test_problems_are_reported_under_the_flag():
    with pytest.raises(ConfigError, match="--block-size='7'"):
        config_from_args(parse("--block-size", "7"))
