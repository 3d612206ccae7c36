"""Running servers with tiny models of random weights, for every test below this folder that wants one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fakes.hf_folder import CHAT_TEMPLATE, write_hf_folder
from fakes.live_server import LiveServer
from fakes.tiny_models import LLAMA

NAME = "tiny"
OPTIONS = (
    "--kernel-backend=reference",
    "--max-model-len=256",
    "--num-gpu-blocks-override=256",
    "--served-model-name",
    NAME,
    "other",
)
TAUGHT = (
    '{% if tools %}{{ \'<|im_start|>system\\n\' + (tools | tojson) + \' <tool_call>{"name": ..., "arguments": ...}'
    "</tool_call><|im_end|>\\n' }}{% endif %}" + CHAT_TEMPLATE + "{% if enable_thinking is defined %}{{ '<think>\\n' }}"
    "{% if not enable_thinking %}{{ '</think>' }}{% endif %}{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("model") / NAME, LLAMA)


@pytest.fixture(scope="session")
def server(tiny_folder, tmp_path_factory):
    """Ready, with two names and no key."""
    with LiveServer(tiny_folder, OPTIONS, {}, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def taught(tmp_path_factory):
    """A server whose chat template teaches calls and reasoning."""
    folder = write_hf_folder(tmp_path_factory.mktemp("model") / "taught", replace(LLAMA, max_position=1024))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": TAUGHT}))
    options = ("--kernel-backend=reference", "--max-model-len=1024", "--num-gpu-blocks-override=256",
               '--structured-outputs-config={"disable_any_whitespace": true}')  # fmt: skip
    with LiveServer(folder, options, {}, tmp_path_factory.mktemp("server")) as running:
        yield running
