"""The argument parser of all commands: sectioned help, - and _ interchangeable, errors as values.

Owns: how arguments are read and help is shown.   Does not own: which options there are (config/schema.py, commands).
All values stay text here; `config/load.py` reads and checks them, so that every problem is reported at once.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from octavo.base.errors import ConfigProblem, OctavoError
from octavo.config.load import suggest
from octavo.config.option import Option
from octavo.config.schema import GROUP_TITLES, all_options, group_types
from octavo.config.values import describe_values
from octavo.config.vllm_names import NOT_HERE, is_switch, is_without_effect


class UsageError(OctavoError):
    """The command line cannot be read."""


class HelpShown(Exception):  # noqa: N818 - not an error
    """Help was asked for and printed; there is nothing else to do."""


class HelpFormatter(argparse.HelpFormatter):
    """argparse's formatter; an action may bring the text of its own left column as `.invocation`."""

    def __init__(self, prog: str) -> None:
        width = min(120, shutil.get_terminal_size((100, 24)).columns)
        super().__init__(prog, max_help_position=36, width=width)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        return getattr(action, "invocation", None) or super()._format_action_invocation(action)


class CommandParser(argparse.ArgumentParser):
    """Parser of one command. Raises UsageError where argparse would exit."""

    def __init__(self, **details: Any) -> None:
        details.setdefault("formatter_class", HelpFormatter)
        super().__init__(add_help=False, allow_abbrev=False, **details)
        self.engine_actions: dict[str, argparse.Action] = {}
        """Option name -> its action; empty for commands without an engine."""
        help_action = self.add_argument(
            "-h", "--help", nargs="?", const="short", action=_HelpAction, default=argparse.SUPPRESS, metavar="TOPIC"
        )
        help_action.help = "this text"
        help_action.invocation = "-h, --help"  # type: ignore[attr-defined]

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def help_on(self, topic: str) -> str:
        """Help text: "short", "all", a group, a flag, or a word that flags contain. Raises UsageError."""
        if topic == "all" or (topic == "short" and not self.engine_actions):
            return self.format_help()
        if topic == "short":
            return self._short_help()
        options = [option for name, option in all_options().items() if name in self.engine_actions]
        group = _find_group(topic)
        in_group = [option for option in options if option.group == group]
        if group is not None and in_group:
            return self._section(GROUP_TITLES[group], in_group)
        name = topic.lstrip("-").replace("-", "_")
        if name in self.engine_actions:
            return describe_option(all_options()[name])
        found = [option for option in options if name in option.name]
        if found:
            return self._section(f"flags with {topic!r}", found)
        raise UsageError(f"no help on {topic!r}: it {suggest(name, [*self.engine_actions, *GROUP_TITLES])}")

    def _section(self, title: str, options: Sequence[Option]) -> str:
        formatter = self._get_formatter()
        formatter.start_section(title)
        formatter.add_arguments([self.engine_actions[option.name] for option in options])
        formatter.end_section()
        return formatter.format_help()

    def _short_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        own = [action for action in self._actions if action not in self.engine_actions.values()]
        common = [
            self.engine_actions[name]
            for name, option in all_options().items()
            if name in self.engine_actions and option.declaration.common
        ]
        positionals = [action for action in own if not action.option_strings]
        usage = " ".join([self.prog, "[flags]", *(str(action.metavar or action.dest) for action in positionals)])
        for title, actions in (("arguments", positionals), ("flags of this command", own), ("common flags", common)):
            formatter.start_section(title)
            formatter.add_arguments([action for action in actions if actions is positionals or action.option_strings])
            formatter.end_section()
        groups = ", ".join(dict.fromkeys(all_options()[name].group for name in self.engine_actions))
        more = f"\nAll flags: --help=all. One group: --help=GROUP ({groups}). One flag: --help=max-model-len.\n"
        return f"usage: {usage}\n\n" + formatter.format_help() + more


class _HelpAction(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        print(parser.help_on(values), end="")
        raise HelpShown


def _find_group(topic: str) -> str | None:
    """A group by its name, its title or its class."""
    word = topic.lower()
    for group, group_type in group_types().items():
        if word in (group, GROUP_TITLES[group].lower(), group_type.__name__.lower()):
            return group
    return None


def describe_option(option: Option) -> str:
    """All that is known of one option, for `--help=max-model-len`."""
    declaration = option.declaration
    default = "none" if option.default in (None, (), {}) else option.default
    lines = [option.flag, f"    {declaration.doc}", ""]
    facts = [
        ("values", describe_values(option)),
        ("unit", declaration.unit),
        ("default", default),
        ("auto", declaration.auto),
        ("also", declaration.short_flag),
        ("environment", option.env_name),
        ("unlike vLLM", declaration.differs),
    ]
    return "\n".join(lines + [f"    {name + ':':<13}{value}" for name, value in facts if value != ""]) + "\n"


def normalize_argv(argv: Sequence[str]) -> list[str]:
    """`--max_model_len` as `--max-model-len`, and flags that argparse would misread with an explicit value.

    A switch that knows `auto` may stand alone (`--async-scheduling`) or be followed by auto; written `--flag=true` it
    cannot take the positional argument behind it for its value. Flags of vLLM that are not here keep their value,
    which would be taken for the positional argument.
    """
    tri_state = {
        option.flag for option in all_options().values() if option.declaration.kind == "switch" and option.has_auto
    }
    out: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*out, word, *rest]
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            flag = flag.replace("_", "-")
            if flag in tri_state and not equals:
                equals, value = "=", rest.pop(0) if rest and rest[0] == "auto" else "true"
            elif _is_valued_elsewhere(flag) and not equals and rest and not _is_flag(rest[0]):
                equals, value = "=", rest.pop(0)
            word = flag + equals + value
        out.append(word)
    return out


def unknown_problems(
    parser: argparse.ArgumentParser, unknown: Sequence[str], argv: Sequence[str]
) -> list[ConfigProblem]:
    """What is wrong with the words that the parser did not take: each with the flag that was meant, if one is near.

    argv: all words. A flag's value is looked up there, as the parser may have taken it for a positional argument.
    """
    known = list(_all_flags(parser))
    has_engine = "--max-model-len" in known
    problems = []
    asked: str | bool | None
    for index, word in enumerate(unknown):
        if _is_flag(word):
            flag, equals, value = word.partition("=")
            behind = argv[argv.index(word) + 1 :] if word in argv else []
            shown: str | None = value if equals else next((word for word in behind[:1] if not _is_flag(word)), None)
            name = flag.lstrip("-").replace("-", "_")
            if has_engine and is_switch(name.removeprefix("no_")):
                shown, asked = None, not name.startswith("no_")
                name = name.removeprefix("no_")
            else:
                asked = shown
            if has_engine and name in NOT_HERE:
                if not is_without_effect(name, asked):
                    problems.append(ConfigProblem(flag, shown, NOT_HERE[name][1]))
            else:
                problems.append(ConfigProblem(flag, shown, suggest(flag, known)))
        elif index == 0 or not _is_flag(unknown[index - 1]):
            problems.append(ConfigProblem("argument", word, f"is one too many; see {parser.prog} --help"))
    return problems


def _is_valued_elsewhere(flag: str) -> bool:
    """True for a flag of vLLM that we do not have and that takes a value."""
    name = flag.lstrip("-").replace("-", "_")
    return name in NOT_HERE and not is_switch(name)


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not word.lstrip("-").isdigit()


def _all_flags(parser: argparse.ArgumentParser) -> Iterable[str]:
    for action in parser._actions:
        yield from (flag for flag in action.option_strings if flag.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _all_flags(child)
