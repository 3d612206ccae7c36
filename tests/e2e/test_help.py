"""Help answers at once: it loads nothing that computes."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

COMMANDS = [["--help"], ["--version"], ["generate", "--help"], ["bench", "--help"], ["bench", "latency", "--help=all"]]


def run_s(words):
    started_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "octavo.cli.main", *words], capture_output=True, timeout=60, check=True
    )
    assert done.stdout
    return time.perf_counter() - started_s


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_takes_less_than_300_ms(words):
    """The best of five: the machine may be busy with something else."""
    assert min(run_s(words) for _ in range(5)) < 0.3


@pytest.mark.parametrize("command", ["generate", "bench"])
def test_help_imports_no_arrays_and_no_tokenizer(command):
    script = (
        "import sys\nfrom octavo.cli.main import main\n"
        f"main([{command!r}, '--help'])\n"
        "heavy = {'numpy', 'tokenizers', 'jinja2', 'rich', 'huggingface_hub', 'octavo.llm'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
