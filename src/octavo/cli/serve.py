"""`octavo serve [MODEL]`: an OpenAI-compatible server.

Owns: the positional model, the log level of the HTTP server.   Does not own: serving (octavo.server).
"""

from __future__ import annotations

import argparse

from octavo.cli.engine_flags import add_engine_flags, config_from_args


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model_tag", nargs="?", metavar="MODEL", help="alias, folder, .gguf file or Hugging Face id; wins over --model"
    )
    parser.add_argument("--pull", action="store_true", help="download the model first if the cache does not have it")
    add_engine_flags(parser, usage="server")


def run(args: argparse.Namespace) -> int:
    from octavo.server.server import serve, set_http_log_level

    config = config_from_args(args)
    set_http_log_level(config.server.uvicorn_log_level)
    if args.pull:
        from octavo.cli.pull import pull_if_alias

        pull_if_alias(config.model.model)
    return serve(config)
