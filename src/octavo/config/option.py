"""How one option is declared, and how all options of a configuration are listed.

Owns: the metadata that flags, environment names, `--help`, the docs page and the value checks are generated from.
Does not own: the options themselves (schema.py), reading raw values (values.py).
Invariant: option names are unique over all groups, so files, environment and kwargs need no group prefix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Kind = Literal["text", "names", "choice", "count", "size", "fraction", "switch", "json"]
"""names: one or more words; count: an integer, human forms accepted; size: bytes; switch: yes or no."""

Auto = Literal["auto"]
AUTO: Final = "auto"
"""The value that `config/resolve.py` replaces once the model and the machine are known."""

_KEY = "option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Everything the schema says of an option beside its name, type and default."""

    doc: str
    """One line."""
    kind: Kind
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    multiple_of: int | None = None
    choices: tuple[str, ...] = ()
    auto: str = ""
    """How `auto` is resolved; empty: the option has no `auto`."""
    aliases: Mapping[str, object] = field(default_factory=dict)
    """Other spellings of a value -> the value."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Values that users may try -> the remedy."""
    short_flag: str = ""
    common: bool = False
    """Shown by plain `--help`."""
    secret: bool = False
    """Never printed."""
    differs: str = ""
    """Where this differs from vLLM's flag of that name, and why. Empty: it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option with its place in the configuration."""

    name: str
    group: str
    """Name of the field of EngineConfig that holds the group."""
    default: object
    declaration: Declaration

    @property
    def flag(self) -> str:
        """As on the command line: `--max-model-len`."""
        return "--" + self.name.replace("_", "-")

    @property
    def env_name(self) -> str:
        """As in the environment: `OCTAVO_MAX_MODEL_LEN`."""
        return "OCTAVO_" + self.name.upper()

    @property
    def has_auto(self) -> bool:
        return bool(self.declaration.auto)


def option(default: Any, doc: str, *, kind: Kind, **details: Any) -> Any:
    """A dataclass field that carries a Declaration. `details` are Declaration's other fields."""
    metadata = {_KEY: Declaration(doc=doc, kind=kind, **details)}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def options_of(group: str, group_type: type) -> Iterator[Option]:
    """The options that a group's dataclass declares, in order."""
    for item in dataclasses.fields(group_type):
        has_factory = item.default_factory is not dataclasses.MISSING
        default = item.default_factory() if has_factory else item.default  # type: ignore[operator]
        yield Option(name=item.name, group=group, default=default, declaration=item.metadata[_KEY])
