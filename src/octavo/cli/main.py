"""The command `octavo`: finds the subcommand's module, and turns errors into one last line and an exit code.

Owns: the table of commands, exit codes.   Does not own: any command's work.
A command is a module in this folder with `add_arguments(parser)` and `run(args) -> int` (its exit code). It is imported
only when asked for, and imports what it needs inside `run`, so that help and version answer at once.
Exit codes: 0 done, 1 failed, 2 wrong options or usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from octavo import __version__
from octavo.base.errors import ConfigError, ConfigProblem, OctavoError
from octavo.cli.engine_flags import config_from_args
from octavo.cli.parser import CommandParser, HelpShown, UsageError, normalize_argv, unknown_problems
from octavo.config.load import suggest
from octavo.config.schema import EngineConfig, all_options

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command lives, and what it does, in a few words."""

    module: str
    summary: str


COMMANDS: dict[str, Command] = {
    "generate": Command("octavo.cli.generate", "answer prompts with a model"),
    "serve": Command("octavo.cli.serve", "serve a model to OpenAI clients over HTTP"),
    "pull": Command("octavo.cli.pull", "download a model by its alias"),
    "models": Command("octavo.cli.models", "list aliases and what is in the cache"),
    "bench": Command("octavo.cli.bench", "measure latency and throughput"),
    "collect-env": Command("octavo.cli.collect_env", "print versions and hardware, for bug reports"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character of an answer gets a ?, not a traceback.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = dispatch(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except (ConfigError, UsageError) as error:
        print_error(error)
        return EXIT_USAGE
    except OctavoError as error:
        print_error(error)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader is gone (`octavo models | head`).
        _drop_output()
        return EXIT_FAILED
    except OSError as error:
        print_error(OctavoError(str(error)))
        return EXIT_FAILED


def _drop_output() -> None:
    """Throw away what standard output has not taken; keeps the interpreter from complaining when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def dispatch(argv: list[str]) -> int:
    """Run one command. Raises what the command raises."""
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if name in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    if name in ("-v", "--version"):
        print(f"octavo {__version__}")
        return 0
    if name not in COMMANDS:
        remedy = suggest(name, COMMANDS, kind="a command", otherwise="octavo --help")
        raise ConfigError([ConfigProblem(name, None, remedy)])
    module = importlib.import_module(COMMANDS[name].module)
    try:
        args = parse(name, module, rest)
    except HelpShown:
        return 0
    if hasattr(args, "print_config"):
        config = config_from_args(args)
        _start_logging(config)
        if args.print_config:
            from octavo.cli.print_config import print_config

            print_config(config)
            return 0
    return int(module.run(args))


def _start_logging(config: EngineConfig) -> None:
    from octavo.base.log import setup_logging

    setup_logging(config.observability.log_level, config.observability.log_format)


def parse(name: str, module: ModuleType, argv: Sequence[str]) -> argparse.Namespace:
    """A command's arguments. Raises UsageError, or ConfigError with everything that is wrong."""
    parser = CommandParser(prog=f"octavo {name}", description=_sentence(COMMANDS[name].summary))
    module.add_arguments(parser)
    words = normalize_argv(argv)
    args, unknown = parser.parse_known_args(words)
    problems = unknown_problems(parser, unknown, words)
    if problems:
        if hasattr(args, "print_config"):
            try:
                config_from_args(args)
            except ConfigError as error:
                problems += error.problems
        raise ConfigError(problems)
    return args


def _sentence(summary: str) -> str:
    return summary[0].upper() + summary[1:] + "."


def overview() -> str:
    """What `octavo --help` prints."""
    width = max(map(len, COMMANDS)) + 2
    lines = ["usage: octavo [-h] [-v] COMMAND ...", "", "commands:"]
    lines += [f"  {name:<{width}}{command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "More on one: octavo COMMAND --help. Version: octavo --version."]
    return "\n".join(lines) + "\n"


def print_error(error: OctavoError) -> None:
    """The error on stderr, cause and remedy last; no traceback: nobody needs our stack to fix an option."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
    text = "\n".join(map(_as_flag, error.problems)) if isinstance(error, ConfigError) else str(error)
    with contextlib.suppress(OSError):  # a closed stderr: nobody is there to be told
        print("\n".join(f"octavo: {line}" for line in text.splitlines() if line.strip()), file=sys.stderr)


def _as_flag(problem: ConfigProblem) -> str:
    """A problem whose option is named as in `LLM(...)`, by the flag that a command line has."""
    option = all_options().get(problem.option)
    return str(problem if option is None else replace(problem, option=option.flag))


if __name__ == "__main__":
    sys.exit(main())
