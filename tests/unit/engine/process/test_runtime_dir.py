"""The sockets' folder is private, named after its owner, and never left behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from octavo.base.errors import OctavoError
from octavo.engine.process.runtime_dir import RuntimeDir, remove_stale


@pytest.fixture
def parent():
    with tempfile.TemporaryDirectory(prefix="o") as folder:
        yield Path(folder)


def test_only_its_owner_can_enter_whatever_the_umask(parent):
    before = os.umask(0)
    try:
        folder = RuntimeDir(parent)
    finally:
        os.umask(before)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.socket_address("e0") == f"ipc://{folder.path}/e0"


def test_it_is_removed_with_its_sockets_and_again_without_harm(parent):
    folder = RuntimeDir(parent)
    (folder.path / "e0").touch()
    (folder.path / "e1").touch()
    folder.remove_socket("e0")
    assert [entry.name for entry in folder.path.iterdir()] == ["e1"]
    folder.remove()
    folder.remove()
    assert list(parent.iterdir()) == []


def test_folders_of_dead_programs_are_removed_and_no_others(parent):
    living = RuntimeDir(parent)
    for name in ("octavo-4194999-1-dead", f"octavo-{os.getpid()}-1-reused", "octavo-notes", "other"):
        (parent / name).mkdir()
    (parent / "octavo-4194999-1-file").touch()
    assert remove_stale(parent) == 2
    assert {entry.name for entry in parent.iterdir()} == {
        living.path.name,
        "octavo-notes",
        "other",
        "octavo-4194999-1-file",
    }


def test_a_start_tidies_up_behind_dead_programs(parent):
    (parent / "octavo-4194999-1-dead").mkdir()
    folder = RuntimeDir(parent)
    assert list(parent.iterdir()) == [folder.path]


def test_a_path_too_long_for_a_socket_is_an_error_that_names_the_remedy(parent):
    deep = parent / ("d" * 90)
    deep.mkdir()
    with pytest.raises(OctavoError, match="set TMPDIR to a shorter one"):
        RuntimeDir(deep)
    assert list(deep.iterdir()) == []
