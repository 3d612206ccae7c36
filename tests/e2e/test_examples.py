"""The examples as a user runs them: processes of their own, offline and against a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.live_server import LiveServer

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *words):
    command = [sys.executable, str(EXAMPLES / name), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs_smollm2
@pytest.mark.usefixtures("smollm2_path")
def test_texts_have_their_forms():
    text = run("structured_output.py")
    assert text.count("(stop)") == 4
    assert '"kind": "cat"' in text


@pytest.mark.usefixtures("qwen_path")
def test_a_result_of_a_tool_reaches_the_answer():
    call, answer = run("tools.py").splitlines()[:2]
    assert "'city': 'Paris'" in call
    assert "21" in answer


def test_both_through_the_openai_client(qwen_path, tmp_path):
    pytest.importorskip("openai", reason="the client is a development extra")
    options = ("--max-model-len=2048", "--kv-cache-memory-bytes=256M")
    with LiveServer(qwen_path, options, {}, tmp_path) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        call, answer = run("tools.py", url).splitlines()[:2]
        assert json.loads(call.removeprefix("call: get_weather ")) == {"city": "Paris", "unit": "celsius"}
        assert "21" in answer
        assert "'kind': 'cat'" in run("structured_output.py", url)
