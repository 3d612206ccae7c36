import os
import sys
import types

import pytest

from octavo.cli import main as cli
from octavo.cli.engine_flags import add_engine_flags


@pytest.fixture
def command(monkeypatch):
    """A command `try` with an engine and a prompt; tests replace `command.run`, `command.args` is what it got."""
    module = types.ModuleType("octavo.cli.try_command")
    module.args = None

    def add_arguments(parser):
        parser.add_argument("prompt", nargs="*")
        parser.add_argument("--max-tokens", type=int, default=16)
        add_engine_flags(parser)

    def run(args):
        module.args = args
        return 0

    module.add_arguments, module.run = add_arguments, run
    monkeypatch.setitem(cli.COMMANDS, "try", cli.Command(module.__name__, "try it"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in list(os.environ):
        if name.startswith("OCTAVO_"):
            monkeypatch.delenv(name)
    return module
