"""Gather an EngineConfig from default < file < environment < flags or keyword arguments.

Owns: the order of sources, names that do not exist, and reporting all problems at once. Options are read from the
environment (OCTAVO_<OPTION>) here and nowhere else.
Does not own: reading a value (values.py), rules between options (validate.py). OCTAVO_HOME is no option: it says where
pulled models are kept, to loading/cache.py.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.config import validate
from octavo.config.option import Option
from octavo.config.schema import EngineConfig, Usage, all_options, group_types
from octavo.config.values import read_value
from octavo.config.vllm_names import NOT_HERE, is_without_effect

_ENV_PREFIX = "OCTAVO_"
_HIDDEN = "***"


def load_config(
    given: Mapping[str, object],
    *,
    usage: Usage = "offline",
    config_file: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    label: Callable[[str], str] = str,
    defaults: Mapping[str, object] | None = None,
) -> EngineConfig:
    """The configuration asked for by `given` (option name -> raw value), the file and the environment.

    A value of None means "not given". `label` makes the name that a problem in `given` is reported under (the command
    line passes one that makes flags). `env` defaults to the process's environment. `defaults` stand in for the
    schema's: every other source wins over them.
    Raises ConfigError with every problem found: unknown names, malformed values, values that do not go together.
    """
    values: dict[str, object] = dict(defaults or {})
    problems: list[ConfigProblem] = []
    if config_file is not None:
        path = Path(config_file)
        read_source(_read_file(path), values, problems, label=lambda name: f"{path.name}: {name}")
    environment = os.environ if env is None else env
    read_source(_options_in(environment, problems), values, problems, label=lambda name: _ENV_PREFIX + name.upper())
    read_source(given, values, problems, label=label)
    config = _build(values, usage)
    problems += validate.find_problems(config)
    if problems:
        raise ConfigError(problems)
    return config


def suggest(name: str, known: Iterable[str], *, kind: str = "an option", otherwise: str = "--help=all") -> str:
    """A remedy for a name that does not exist: the nearest one that does, or where to look."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"is not {kind}; " + (f"did you mean {near[0]}?" if near else f"see {otherwise}")


def read_source(
    source: Mapping[str, object],
    values: dict[str, object],
    problems: list[ConfigProblem],
    *,
    label: Callable[[str], str],
) -> None:
    """Add what one source says to `values`, and what is wrong with it to `problems`. Names may have - or _."""
    options = all_options()
    for raw_name, raw in source.items():
        name = raw_name.replace("-", "_")
        if name not in options:
            if not is_without_effect(name, raw):
                remedy = NOT_HERE[name][1] if name in NOT_HERE else suggest(name, options)
                problems.append(ConfigProblem(label(raw_name), raw, remedy))
            continue
        if raw is None:
            continue
        try:
            values[name] = read_value(options[name], raw)
        except ValueError as error:
            shown = _HIDDEN if options[name].declaration.secret else raw
            problems.append(ConfigProblem(label(raw_name), shown, str(error)))


def _build(values: Mapping[str, object], usage: Usage) -> EngineConfig:
    options = all_options()
    groups = {
        group: group_type(**{name: value for name, value in values.items() if options[name].group == group})
        for group, group_type in group_types().items()
    }
    return EngineConfig(usage=usage, **groups)


def _options_in(environment: Mapping[str, str], problems: list[ConfigProblem]) -> dict[str, object]:
    """OCTAVO_* that name options. A near miss is a problem; other names are somebody else's (service links)."""
    by_env_name: dict[str, Option] = {option.env_name: option for option in all_options().values()}
    found: dict[str, object] = {}
    for env_name, raw in environment.items():
        if env_name in by_env_name and not raw.startswith("tcp://"):  # Kubernetes: a service named octavo, not a port
            found[by_env_name[env_name].name] = raw
        elif env_name.startswith(_ENV_PREFIX) and env_name not in by_env_name:
            near = difflib.get_close_matches(env_name, by_env_name, n=1, cutoff=0.9)
            if near:
                problems.append(ConfigProblem(env_name, raw, f"is not an option; did you mean {near[0]}?"))
    return found


def _read_file(path: Path) -> Mapping[str, object]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([ConfigProblem("--config", str(path), f"cannot be read: {error.strerror}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = " ".join(str(error).split())
        raise ConfigError([ConfigProblem("--config", str(path), f"is not YAML: {where}")]) from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError([ConfigProblem("--config", str(path), "must hold lines such as max_model_len: 8192")])
    return content
