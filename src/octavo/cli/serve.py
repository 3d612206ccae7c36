"""`octavo serve [MODEL]`: an OpenAI-compatible server.

Owns: the positional model, the log level of the HTTP server.   Does not own: serving (octavo.server).
"""

from __future__ import annotations

import argparse
import contextlib

from octavo.cli.engine_flags import add_engine_flags, config_from_args


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model_tag", nargs="?", metavar="MODEL", help="alias, folder, .gguf file or Hugging Face id; wins over --model"
    )
    parser.add_argument("--pull", action="store_true", help="download the model first if the cache does not have it")
    add_engine_flags(parser, usage="server")


def run(args: argparse.Namespace) -> int:
    config = config_from_args(args)
    if args.pull:
        from octavo.cli.pull import pull_if_alias

        pull_if_alias(config.model.model)
    from octavo.engine.process.spawned import SpawnedEngine

    with contextlib.ExitStack() as stack:
        # The engine's process imports while this one does.
        spawned = None if config.server.in_process else stack.enter_context(SpawnedEngine())
        from octavo.server.server import serve, set_http_log_level

        set_http_log_level(config.server.uvicorn_log_level)
        return serve(config, spawned)
