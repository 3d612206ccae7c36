"""`--print-config` of every command with an engine."""

from __future__ import annotations

from octavo.config.schema import EngineConfig


def print_config(config: EngineConfig) -> None:
    """Print the configuration with every `auto` resolved for this model and machine, as a file for `--config`."""
    from octavo.config.dump import dump_config
    from octavo.engine.build import resolve_options

    print(dump_config(resolve_options(config)), end="")
