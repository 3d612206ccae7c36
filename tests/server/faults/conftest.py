"""Servers that fault cases are driven against, with and without asserts (S75)."""

from __future__ import annotations

import pytest
from fakes.fault_suite import GUARDED, SMALL, Suite
from fakes.hf_folder import write_hf_folder
from fakes.live_server import LiveServer


@pytest.fixture(scope="session", params=["", pytest.param("1", marks=pytest.mark.slow)], ids=["", "optimized"])
def optimize(request):
    """S75: everything here also without asserts."""
    return {"PYTHONOPTIMIZE": request.param} if request.param else {}


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="session")
def suite(model, optimize, tmp_path_factory):
    with LiveServer(model, SMALL, optimize, tmp_path_factory.mktemp("server")) as server:
        yield Suite(server)


@pytest.fixture(scope="session")
def guarded(model, optimize, tmp_path_factory):
    """A server with a key, short timeouts, trusted templates, and prompts in its log."""
    with LiveServer(model, (*SMALL, *GUARDED), optimize, tmp_path_factory.mktemp("guarded")) as server:
        yield server
