"""Say in one line what is missing to build: Python, a C++20 compiler, CMake. Needs nothing but the standard library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

MIN_PYTHON = (3, 11)
MIN_GCC = 11
MIN_CLANG = 14


def find_problem() -> str | None:
    """The first thing that would stop the build, as one line; None if nothing would."""
    if sys.version_info < MIN_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        return f"Python {found} is too old: Octavo needs 3.11 or newer (make PYTHON=/path/to/python3.11)"
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler or shutil.which(compiler.split()[0]) is None:
        return "no C++ compiler found: install g++ 11 or newer, or clang++ 14 or newer (Debian: apt install g++)"
    try:
        banner = subprocess.run(
            [*compiler.split(), "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"the C++ compiler {compiler} does not run: {error}"
    version = re.search(r"(\d+)\.\d+(?:\.\d+)?", banner)
    if version is None:
        return f"cannot read the version of the C++ compiler {compiler}; set CXX to g++ >= 11 or clang++ >= 14"
    major = int(version.group(1))
    is_clang = "clang" in banner.lower()
    needed = MIN_CLANG if is_clang else MIN_GCC
    if major < needed:
        name = "clang++" if is_clang else "g++"
        return f"{compiler} is {name} {major}: Octavo's kernels are C++20 and need {name} {needed} or newer (set CXX)"
    return None


def main() -> int:
    problem = find_problem()
    if problem is None:
        return 0
    print(f"octavo: {problem}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
