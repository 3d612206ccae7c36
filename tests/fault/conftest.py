"""A tiny model, and a short temporary folder that must be empty at the end."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from fakes.hf_folder import write_hf_folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    return write_hf_folder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def socket_parent(monkeypatch):
    """Where sockets' folders are made during the test; short, because a socket's path must be."""
    folder = Path(tempfile.mkdtemp(prefix="o"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)
