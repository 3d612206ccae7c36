import io
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest
from fakes.model_facts import llama_facts, machine_facts

import octavo
from octavo.base.errors import LoadError
from octavo.base.log import get_logger
from octavo.cli.main import COMMANDS, main
from octavo.config.resolve import resolve

HEAVY = ("numpy", "tokenizers", "msgspec", "asyncio", "yaml", "jinja2", "huggingface_hub", "rich", "octavo._native")


def raiser(error):
    def run(args):
        raise error

    return run


def test_no_command_and_help_show_the_commands(capsys):
    assert main([]) == main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"octavo {octavo.__version__}\n"


def test_a_command_that_does_not_exist_suggests_the_near_one(capsys):
    assert main(["generat"]) == 2
    assert capsys.readouterr().err == "octavo: generat: is not a command; did you mean generate?\n"


def test_a_command_gets_its_arguments_and_gives_the_exit_code(command):
    command.run = lambda args: 7 if (args.prompt, args.max_tokens) == (["hi"], 5) else 0
    assert main(["try", "hi", "--max-tokens", "5"]) == 7


@pytest.mark.parametrize("flag", ["--help", "-h", "--help=all", "--help=cache", "--help=seed"])
def test_help_of_a_command_ends_well_without_running_it(command, capsys, flag):
    assert main(["try", flag]) == 0
    assert command.args is None
    assert capsys.readouterr().out


def test_unknown_flags_and_bad_values_are_all_told_with_exit_2(command, capsys):
    assert (
        main(["try", "hi", "--max-model-ln", "8k", "--block-size", "7", "--quantization", "awq", "--dtype=half"]) == 2
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert "octavo: --max-model-ln='8k': is not an option; did you mean --max-model-len?" in lines
    assert any(line.startswith("octavo: --block-size='7'") for line in lines)
    assert any(line.startswith("octavo: --quantization='awq': the format is read") for line in lines)
    assert any(line.startswith("octavo: --dtype='half'") for line in lines)
    assert command.args is None


def test_options_that_do_not_go_together_are_named_by_their_flags(command, capsys):
    assert main(["try", "hi", "-tp", "2"]) == 2
    assert capsys.readouterr().err.startswith("octavo: --tensor-parallel-size=2: ")


@pytest.mark.parametrize("argv", [["try", "--max-tokens", "many"], ["try", "--max-tokens"], ["try", "--help=xyzzy"]])
def test_a_command_line_that_cannot_be_read_ends_with_exit_2(command, capsys, argv):
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("octavo: ")


def test_an_error_of_ours_is_told_without_traceback_cause_last(command, capsys):
    command.run = raiser(LoadError("model.gguf: tensor blk.0 is cut short"))
    assert main(["try"]) == 1
    assert capsys.readouterr().err == "octavo: model.gguf: tensor blk.0 is cut short\n"


def test_an_interrupt_is_quiet(command, capsys):
    command.run = raiser(KeyboardInterrupt())
    assert main(["try"]) == 130
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_bug_keeps_its_traceback(command):
    command.run = raiser(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["try"])


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_traceback(monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    script = "import sys; from octavo.cli.main import main; sys.exit(main(['collect-env']))"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert stderr == b""


@pytest.mark.parametrize("argv", [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_and_version_import_nothing_heavy(argv):
    script = (
        "import sys\nfrom octavo.cli.main import main\n"
        f"code = main({argv!r})\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'imported: {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_print_config_prints_what_the_engine_would_run_with(command, capsys, monkeypatch):
    def resolve_options(config):
        return resolve(config, llama_facts(), machine_facts())

    build = types.SimpleNamespace(resolve_options=resolve_options)
    monkeypatch.setitem(sys.modules, "octavo.engine.build", build)
    assert main(["try", "--print-config", "--max-model-len", "1k"]) == 0
    assert command.args is None
    printed = capsys.readouterr().out
    assert "max_model_len: 1000\n" in printed
    assert "dtype: bfloat16\n" in printed


def test_options_are_checked_before_a_command_runs(command, capsys):
    assert main(["try", "--max-model-len", "0"]) == 2
    assert command.args is None
    assert "--max-model-len='0'" in capsys.readouterr().err


def test_log_options_take_effect_before_a_command_runs(command, capsys):
    def run(args):
        get_logger("octavo.try").info("hello")
        get_logger("octavo.try").debug("not this")
        return 0

    command.run = run
    assert main(["try", "--log-format", "json"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "hello"
    assert main(["try", "--log-level", "error"]) == 0
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_written_is_one_line(command, capsys):
    def run(args):
        print("the result")
        Path("/nonexistent/x.json").write_text("")

    command.run = run
    assert main(["try"]) == 1
    out, err = capsys.readouterr()
    assert out == "the result\n"
    assert err.splitlines() == ["octavo: [Errno 2] No such file or directory: '/nonexistent/x.json'"]


@pytest.mark.parametrize(("redirection", "code"), [(">&-", 0), ("> /dev/full", 1), ("<&- >&- 2>&-", 0)])
def test_an_output_that_takes_nothing_is_no_traceback(redirection, code):
    command = f"{sys.executable} -m octavo.cli.main --version {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


def test_a_terminal_that_cannot_show_a_character_gets_another(command, monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    command.run = lambda args: print("é") or 0
    assert main(["try"]) == 0
    assert output.buffer.getvalue() == b"?\n"
