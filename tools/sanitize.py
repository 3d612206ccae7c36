"""Build the native module under a sanitizer and run tests against it: `sanitize.py address|thread [pytest arguments]`.

address: AddressSanitizer and UndefinedBehaviorSanitizer. thread: ThreadSanitizer. Any report ends the run. The build
lies in build/sanitize; the installed package stays as it is, and only the process of the tests uses the module built
here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
FLAGS = {
    "address": "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer",
    "thread": "-fsanitize=thread -fno-omit-frame-pointer",
}
# Threads meet in the host: one level of kernels shows what all would.
DEFINITIONS = {"address": [], "thread": ["-DOCTAVO_PORTABLE=ON"]}
# The interpreter is not built with a sanitizer: its runtime must be there first, and the C++ library before it looks
# for the functions that it wraps.
PRELOADED = {"address": ("libasan.so", "libstdc++.so.6"), "thread": ("libtsan.so", "libstdc++.so.6")}
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    "PYTHONMALLOC": "malloc",  # so that the interpreter's objects are watched too
    "OPENBLAS_NUM_THREADS": "1",
}
TIMED = "tests/unit/loading/test_real_model.py::test_it_opens_with_its_tokenizer_in_half_a_second"
DEFAULT_TESTS = {
    "address": ["tests/kernels", "tests/unit/loading", "--deselect", TIMED],
    "thread": ["tests/kernels"],
}
# Sanitized code is many times slower than what tests set their limits for; a report must not end in a captured stream.
PYTEST = ["-q", "-m", "not slow", "--timeout", "1800", "-p", "no:cacheprovider", "--capture=sys"]


def find_runtime(compiler: str, name: str) -> str:
    """The full path of one of the compiler's libraries."""
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = Path(found.stdout.strip())
    if not path.is_absolute():
        raise SystemExit(f"sanitize: {compiler} has no {name}: set CXX to a g++ that has its sanitizers")
    return str(path.resolve())


def build(kind: str, compiler: str) -> Path:
    """Builds the module, or what changed of it; returns its file."""
    folder = ROOT / "build" / "sanitize" / kind
    env = {**os.environ, "PATH": TOOL_PATH}
    generator = ["-G", "Ninja"] if shutil.which("ninja", path=TOOL_PATH) else []
    definitions = [
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_CXX_FLAGS={FLAGS[kind]}",
        f"-DPython_EXECUTABLE={sys.executable}",
        *DEFINITIONS[kind],
    ]
    subprocess.run(["cmake", *generator, "-S", ROOT / "native", "-B", folder, *definitions], env=env, check=True)
    subprocess.run(["cmake", "--build", folder], env=env, check=True)
    return folder / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"


def run_tests(module: Path, arguments: list[str]) -> int:
    """In the process that has the runtime: puts the module in the place of the installed one, and runs pytest."""
    import pytest

    os.environ.pop("LD_PRELOAD")  # not for what the tests start
    spec = importlib.util.spec_from_file_location("octavo._native", module)
    if spec is None or spec.loader is None:
        raise SystemExit(f"sanitize: {module} is no module")
    native = importlib.util.module_from_spec(spec)
    sys.modules["octavo._native"] = native
    spec.loader.exec_module(native)
    from octavo import _native

    if _native is not native:
        raise SystemExit(f"sanitize: the package uses {_native.__file__}, not {module}")
    return pytest.main([*PYTEST, *arguments])


def main() -> int:
    kind, *arguments = sys.argv[1:]
    if kind == "run":
        return run_tests(Path(arguments[0]), arguments[1:])
    if kind not in FLAGS:
        raise SystemExit(f"sanitize: {kind} is none of {', '.join(FLAGS)}")
    compiler = os.environ.get("CXX", "c++")
    module = build(kind, compiler)
    preloaded = ":".join(find_runtime(compiler, name) for name in PRELOADED[kind])
    env = {**os.environ, **OPTIONS, "LD_PRELOAD": preloaded}
    command = [sys.executable, __file__, "run", str(module), *(arguments or DEFAULT_TESTS[kind])]
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
