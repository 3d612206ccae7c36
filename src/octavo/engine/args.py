"""EngineArgs: engine options as an object, for programs that are written that way."""

from __future__ import annotations

from octavo.config.load import load_config
from octavo.config.schema import EngineConfig, Usage


class EngineArgs:
    """Any engine option by its name; the names are those of the flags, with underscores.

    Raises ConfigError with every problem: unknown names, malformed values, values that do not go together.
    """

    def __init__(self, **options: object) -> None:
        self.options = dict(options)
        self.create_engine_config()

    def create_engine_config(self, usage: Usage = "offline") -> EngineConfig:
        """The checked configuration. Reads the environment."""
        return load_config(self.options, usage=usage)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.options.items() if name != "hf_token")
        return f"EngineArgs({shown})"
