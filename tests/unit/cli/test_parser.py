import pytest

from octavo.cli.engine_flags import add_engine_flags
from octavo.cli.parser import CommandParser, UsageError, normalize_argv, unknown_problems
from octavo.config.schema import GROUP_TITLES, all_options


@pytest.fixture
def parser():
    made = CommandParser(prog="octavo try", description="Try it.")
    made.add_argument("prompt", nargs="*")
    made.add_argument("--max-tokens", type=int)
    add_engine_flags(made, usage="server")
    return made


def test_plain_help_is_short_and_says_where_the_rest_is(parser):
    text = parser.help_on("short")
    assert "--max-tokens" in text
    assert "--max-model-len" in text
    assert "--num-gpu-blocks-override" not in text
    assert all(group in text for group in GROUP_TITLES)
    assert "--help=all" in text


def test_all_help_names_every_flag_and_the_off_switches(parser):
    text = parser.help_on("all")
    assert all(option.flag in text for option in all_options().values())
    assert "--no-enable-prefix-caching" in text


@pytest.mark.parametrize("topic", ["cache", "Cache", "CacheConfig", "KV memory and prefix cache"])
def test_a_group_is_found_by_name_class_and_title(parser, topic):
    text = parser.help_on(topic)
    assert "--block-size" in text
    assert "--max-num-seqs" not in text


@pytest.mark.parametrize("topic", ["max-model-len", "max_model_len", "--max-model-len"])
def test_a_flag_is_described_in_full(parser, topic):
    text = parser.help_on(topic)
    assert "OCTAVO_MAX_MODEL_LEN" in text
    assert "unlike vLLM" in text
    assert "--seed" not in text


def test_a_word_finds_the_flags_that_contain_it(parser):
    text = parser.help_on("parallel-size")
    assert "--tensor-parallel-size" in text
    assert "--seed" not in text


def test_an_unknown_topic_suggests_the_near_one(parser):
    with pytest.raises(UsageError, match="did you mean scheduler"):
        parser.help_on("schedulr")


def test_without_engine_flags_plain_help_is_the_whole_help():
    parser = CommandParser(prog="octavo pull")
    parser.add_argument("--force", action="store_true", help="pull again")
    assert "--force" in parser.help_on("short")


def test_errors_are_raised_not_printed(parser):
    with pytest.raises(UsageError, match=r"max-tokens.*see octavo try --help"):
        parser.parse_args(["--max-tokens", "many"])


def test_flags_are_not_abbreviated(parser):
    assert parser.parse_known_args(["--max-model=3"])[1] == ["--max-model=3"]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--max_model_len", "8_0"], ["--max-model-len", "8_0"]),
        (["--chat_template=a_b"], ["--chat-template=a_b"]),
        (["--async-scheduling", "hi"], ["--async-scheduling=true", "hi"]),
        (["--async_scheduling", "auto", "hi"], ["--async-scheduling=auto", "hi"]),
        (["--async-scheduling=false"], ["--async-scheduling=false"]),
        (["--async-scheduling"], ["--async-scheduling=true"]),
        (["--no_async_scheduling"], ["--no-async-scheduling"]),
        (["--", "--a_b"], ["--", "--a_b"]),
        (["a_b"], ["a_b"]),
    ],
)
def test_words_are_normalized(argv, expected):
    assert normalize_argv(argv) == expected


def problems(parser, *argv):
    return [str(problem) for problem in unknown_problems(parser, parser.parse_known_args(argv)[1], argv)]


def test_unknown_flags_suggest_flags_of_the_command_and_of_the_engine(parser):
    assert problems(parser, "--max-token=3") == ["--max-token='3': is not an option; did you mean --max-tokens?"]
    assert problems(parser, "--sed", "3") == ["--sed='3': is not an option; did you mean --seed?"]
    assert problems(parser, "-x") == ["-x: is not an option; see --help=all"]


def test_flags_of_vllm_that_ask_nothing_are_no_problem(parser):
    assert problems(parser, "--kv-cache-dtype=auto", "--zyx") == ["--zyx: is not an option; see --help=all"]


@pytest.mark.parametrize("flag", ["--no-enable-lora", "--disable-log-requests", "--device=cpu", "--task=generate"])
def test_flags_of_vllm_that_change_nothing_here_are_no_problem(parser, flag):
    assert problems(parser, flag) == []


@pytest.mark.parametrize("argv", [["--enable-lora"], ["--enable-lora", "model"], ["--enable-sleep-mode"]])
def test_switches_of_vllm_that_are_not_here_are_refused(parser, argv):
    assert f"{argv[0]}: not in this release; leave it out" in problems(parser, *argv)


def test_one_word_too_many_is_named():
    parser = CommandParser(prog="octavo models")
    assert problems(parser, "all") == ["argument='all': is one too many; see octavo models --help"]


def test_flags_of_nested_commands_are_suggested():
    parser = CommandParser(prog="octavo bench")
    nested = parser.add_subparsers(dest="kind").add_parser("latency")
    nested.add_argument("--num-iters")
    assert problems(parser, "latency", "--num-iter=3") == [
        "--num-iter='3': is not an option; did you mean --num-iters?"
    ]


def test_nested_commands_have_the_same_help_and_engine_flags():
    parser = CommandParser(prog="octavo bench")
    nested = parser.add_subparsers(dest="kind", required=True).add_parser("latency")
    add_engine_flags(nested)
    args = parser.parse_args(normalize_argv(["latency", "--max_model_len", "8k", "--async-scheduling"]))
    assert (args.kind, args.max_model_len, args.async_scheduling) == ("latency", "8k", "true")
    assert "--help=GROUP" in nested.help_on("short")
    assert problems(parser, "latency", "--quantization", "awq") == [
        "--quantization='awq': the format is read from the files; leave it out"
    ]


def test_a_flag_of_vllm_that_is_not_here_keeps_its_value_to_itself(parser):
    argv = normalize_argv(["--kv_cache_dtype", "auto", "hello"])
    assert parser.parse_known_args(argv)[1] == ["--kv-cache-dtype=auto"]
    assert problems(parser, *argv) == []
    assert "='3'" in problems(parser, *normalize_argv(["--swap-space", "3", "hello"]))[0]


def test_an_unknown_flag_is_shown_with_its_own_value(parser):
    assert problems(parser, "--max-modl-len", "5", "hello") == [
        "--max-modl-len='5': is not an option; did you mean --max-model-len?"
    ]
