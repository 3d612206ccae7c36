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


def _trained(path, tmp_path_factory):
    options = ("--max-model-len=2048", "--kv-cache-memory-bytes=512M", "--served-model-name=m")
    return LiveServer(path, options, {}, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def qwen(qwen_path, tmp_path_factory):
    """A server of a model that was trained for tools, and whose template shows them."""
    with _trained(qwen_path, tmp_path_factory) as running:
        yield running


@pytest.fixture(scope="module")
def smollm2(smollm2_path, tmp_path_factory):
    """A server of a smaller model, whose template shows no tools."""
    with _trained(smollm2_path, tmp_path_factory) as running:
        yield running


@pytest.fixture(scope="module", params=["qwen", pytest.param("smollm2", marks=pytest.mark.needs_smollm2)])
def trained(request):
    """Servers of models that were trained, one after the other."""
    return request.getfixturevalue(request.param)
