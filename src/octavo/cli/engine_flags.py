"""The engine's options as flags of a command, made from the schema; and back from parsed arguments to a configuration.

A command with an engine calls `add_engine_flags(parser)` in its add_arguments and `config_from_args(args)` in its run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from octavo.config.load import load_config
from octavo.config.option import Kind, Option
from octavo.config.schema import GROUP_TITLES, SERVER_GROUPS, EngineConfig, Usage, all_options

_METAVARS: dict[Kind, str] = {
    "text": "TEXT",
    "names": "NAME",
    "choice": "",
    "count": "N",
    "size": "SIZE",
    "fraction": "X",
    "switch": "",
    "json": "JSON",
}


class _SwitchAction(argparse.Action):
    """--x, --no-x; with `auto` also --x=VALUE (see parser.normalize_argv)."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        is_off = (option_string or "").startswith("--no-")
        setattr(namespace, self.dest, False if is_off else values if isinstance(values, str) else True)


def add_engine_flags(
    parser: argparse.ArgumentParser, *, usage: Usage = "offline", defaults: Mapping[str, object] | None = None
) -> None:
    """Add all engine options, `--config` and `--print-config`; for a server also the server's.

    defaults: what this command uses in place of the schema's defaults.
    """
    parser.set_defaults(usage=usage, engine_defaults=defaults or {})
    sources = parser.add_argument_group("Configuration")
    sources.add_argument("--config", metavar="FILE", help="YAML file of options; flags and OCTAVO_* win over it")
    sources.add_argument(
        "--print-config",
        action="store_true",
        help="print the options with every auto resolved, as a file for --config, and exit",
    )
    shown = {name: title for name, title in GROUP_TITLES.items() if name not in SERVER_GROUPS or usage == "server"}
    groups = {name: parser.add_argument_group(title) for name, title in shown.items()}
    actions: dict[str, argparse.Action] = getattr(parser, "engine_actions", {})
    for option in all_options().values():
        if option.group in groups:
            actions[option.name] = _add_flag(groups[option.group], option)


def engine_kwargs(args: argparse.Namespace) -> dict[str, object]:
    """Engine options that the command line gave, by name, as raw values: what `LLM(**kwargs)` takes."""
    given = vars(args)
    options = {name: _as_given(given[name]) for name in all_options() if given.get(name) is not None}
    if given.get("model_tag") is not None:
        options["model"] = given["model_tag"]  # `serve MODEL`
    return options


def _as_given(value: Any) -> Any:
    """A flag of several words that was given one JSON list: its text."""
    return value[0] if isinstance(value, list) and len(value) == 1 and value[0].startswith("[") else value


def config_from_args(args: argparse.Namespace) -> EngineConfig:
    """The configuration asked for by the command line, `--config` and the environment. Raises ConfigError."""
    return load_config(
        engine_kwargs(args),
        usage=getattr(args, "usage", "offline"),
        config_file=getattr(args, "config", None),
        label=lambda name: "--" + name.replace("_", "-"),
        defaults=getattr(args, "engine_defaults", None),
    )


def _add_flag(group: argparse._ArgumentGroup, option: Option) -> argparse.Action:
    declaration = option.declaration
    flags = [option.flag] + ([declaration.short_flag] if declaration.short_flag else [])
    help_text = f"{declaration.doc} {_default_text(option)}".replace("%", "%%")
    if declaration.kind == "switch":
        flags.append(f"--no-{option.flag[2:]}")
        action = group.add_argument(
            *flags,
            action=_SwitchAction,
            nargs="?" if option.has_auto else 0,
            dest=option.name,
            default=argparse.SUPPRESS,
            metavar="auto",
            help=help_text,
        )
        invocation = ", ".join(flags)
    else:
        metavar = _metavar(option)
        action = group.add_argument(
            *flags,
            dest=option.name,
            default=argparse.SUPPRESS,
            metavar=metavar,
            nargs="+" if declaration.kind == "names" else None,
            help=help_text,
        )
        invocation = f"{', '.join(flags)} {metavar}"
    action.invocation = invocation  # type: ignore[attr-defined]
    return action


def _metavar(option: Option) -> str:
    choices: Sequence[str] = option.declaration.choices
    if not choices:
        return _METAVARS[option.declaration.kind]
    extra = ("auto",) if option.has_auto and "auto" not in choices else ()
    return "{" + ",".join([*extra, *choices]) + "}"


def _default_text(option: Option) -> str:
    if option.default == "auto" and option.has_auto:
        return f"(auto: {option.declaration.auto})"
    if option.default in (None, (), {}):
        return ""
    if isinstance(option.default, bool):
        return f"(default: {'on' if option.default else 'off'})"
    default = " ".join(option.default) if isinstance(option.default, tuple) else option.default
    return f"(default: {default})"
