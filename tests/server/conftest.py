"""A running server with a tiny model of random weights, for every test below this folder that wants one."""

from __future__ import annotations

import pytest
from fakes.hf_folder import write_hf_folder
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


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("model") / NAME, LLAMA)


@pytest.fixture(scope="session")
def server(tiny_folder, tmp_path_factory):
    """Ready, with two names and no key."""
    with LiveServer(tiny_folder, OPTIONS, {}, tmp_path_factory.mktemp("server")) as running:
        yield running
