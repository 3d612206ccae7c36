"""The native code without what x86-64 has: built portably here, and for arm64, where an emulator runs it.

Both do the same IEEE operations in the same order, so all results must agree to the last bit.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
TOOL_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
CMAKE = shutil.which("cmake", path=TOOL_PATH)
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
ARM64_COMPILER = shutil.which("aarch64-linux-gnu-g++")
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
ARM64_TARGET = [
    "-DCMAKE_SYSTEM_NAME=Linux",
    "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
    f"-DCMAKE_CXX_COMPILER={ARM64_COMPILER}",
]
ELF_MACHINE_ARM64 = 183

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CMAKE is None, reason="no cmake"),
]
needs_arm64_compiler = pytest.mark.skipif(
    ARM64_COMPILER is None, reason="no aarch64-linux-gnu-g++ (Debian: apt install g++-aarch64-linux-gnu)"
)
needs_emulator = pytest.mark.skipif(
    EMULATOR is None, reason="no qemu-aarch64-static (Debian: apt install qemu-user-static)"
)


def build(source: Path, folder: Path, *definitions: str) -> Path:
    """Configures and builds with the project's own CMake files; returns the folder of what was built."""
    env = {**os.environ, "PATH": TOOL_PATH}
    generator = ["-G", "Ninja"] if shutil.which("ninja", path=TOOL_PATH) else []
    configure = [CMAKE, *generator, "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *definitions]
    for command in (configure, [CMAKE, "--build", folder]):
        found = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout[-8000:] + found.stderr[-8000:]
    return folder


@pytest.fixture(scope="module")
def programs_here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    return build(NATIVE / "tests", tmp_path_factory.mktemp("portable"), "-DOCTAVO_PORTABLE=ON")


@pytest.fixture(scope="module")
def programs_for_arm64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arm64")
    return build(NATIVE / "tests", folder, *ARM64_TARGET, "-DCMAKE_EXE_LINKER_FLAGS=-static")


def run_kernels(*command: str | Path | None) -> str:
    """Runs the program of all kernels, which must find no failure; returns the fingerprint of its results' bits."""
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    matched = re.fullmatch(r"scalar: (\d+) compared, 0 failed, fingerprint (\w{16})\n", found.stdout)
    assert matched is not None, found.stdout
    assert int(matched[1]) > 1_000_000
    return matched[2]


def test_portable_kernels_find_what_double_precision_finds(programs_here: Path) -> None:
    run_kernels(programs_here / "portable_kernels")


@needs_arm64_compiler
@needs_emulator
def test_kernels_on_arm64_find_the_same_bits(programs_here: Path, programs_for_arm64: Path) -> None:
    expected = run_kernels(programs_here / "portable_kernels")
    assert run_kernels(EMULATOR, programs_for_arm64 / "portable_kernels") == expected


@needs_arm64_compiler
@needs_emulator
def test_the_thread_pool_runs_on_arm64(programs_for_arm64: Path) -> None:
    command = [EMULATOR, programs_for_arm64 / "thread_pool"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@needs_arm64_compiler
def test_the_whole_module_builds_for_arm64(tmp_path: Path) -> None:
    # The interpreter's headers are those of this machine: both have the same sizes of types.
    headers = sysconfig.get_path("include")
    python = [f"-DPython_EXECUTABLE={sys.executable}", f"-DPython_INCLUDE_DIR={headers}"]
    folder = build(NATIVE, tmp_path, *ARM64_TARGET, *python)
    (module,) = folder.glob("_native*.so")
    header = module.read_bytes()[:20]
    assert header.startswith(b"\x7fELF")
    assert int.from_bytes(header[18:20], "little") == ELF_MACHINE_ARM64
