"""Machine code of level amx: on the matrix unit where there is one, else with its instructions trapped one by one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from octavo import _native

NATIVE = Path(__file__).resolve().parents[2] / "native"
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
# As in native/cpu/CMakeLists.txt: what the optimizer does with the unit's instructions is part of what is tested.
FLAGS = ["-std=c++20", "-O3", "-ffp-contract=off", "-fno-math-errno", "-mavx2", "-mfma", "-mf16c"]
FLAGS += ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512bf16", "-w", f"-I{NATIVE / 'include'}"]
LEVEL_FLAGS = {
    "amx": ["-DOCTAVO_LEVEL=amx", "-mamx-tile", "-mamx-bf16"],
    "amx_emulated": ["-DOCTAVO_LEVEL=amx_emulated", "-DOCTAVO_EMULATED_TILES"],
}

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler"),
    pytest.mark.skipif(not _native.test_isa_levels(), reason="the emulation needs AVX-512 BF16"),
]


def build(folder: Path) -> Path:
    compilations = []
    for level, flags in LEVEL_FLAGS.items():
        for name in ("linear", "attention"):
            source, target = NATIVE / "cpu" / f"amx_{name}.cpp", folder / f"{level}_{name}.o"
            command = [COMPILER, *FLAGS, *flags, "-DOCTAVO_TILES", "-c", source, "-o", target]
            compilations.append(subprocess.Popen(command))
    assert [one.wait() for one in compilations] == [0] * len(compilations)
    program = folder / "amx_instructions"
    sources = [NATIVE / "tests" / "amx_instructions.cpp", NATIVE / "host" / "cpu_features.cpp", *folder.glob("*.o")]
    subprocess.run([COMPILER, *FLAGS, *sources, "-o", program], check=True)
    return program


def test_linear_and_attention_do_what_the_emulated_level_does(tmp_path: Path) -> None:
    found = subprocess.run([build(tmp_path)], capture_output=True, text=True, timeout=60, check=True)
    matched = re.search(r"unit: (\w+)\n(\d+) of (\d+) results differ, at most by (\S+)", found.stdout)
    assert matched is not None
    unit, num_different, num_values, largest = matched.groups()
    assert unit == ("real" if _native.detect_cpu_features().amx_bf16 else "trapped")
    assert int(num_values) > 20_000
    if unit == "trapped":
        assert int(num_different) == 0
    # A unit that sums in another order than the manual says is allowed to; wrong sums are not.
    assert float(largest) < 2e-2
