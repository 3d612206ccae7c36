"""Nothing in the source can turn bytes into code (fault case S72), and no decision hangs on an assert (S75)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3] / "src" / "octavo"
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "joblib"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {
    "yaml.load", "yaml.full_load", "yaml.unsafe_load", "torch.load", "os.system", "os.popen", "importlib.import_module",
    "runpy.run_path", "runpy.run_module", "ctypes.CDLL", "ctypes.cdll.LoadLibrary",
}  # fmt: skip
METHODS = {"recv_pyobj", "send_pyobj", "load_module", "exec_module"}
KEYWORDS = {("shell", True), ("allow_pickle", True), ("trust_remote_code", True), ("weights_only", False)}
ALLOWED = {
    ("__init__.py", "importlib.import_module"): "names of a table of our own",
    ("cli/main.py", "importlib.import_module"): "names of a table of our own",
    ("models/load.py", "importlib.import_module"): "only modules of octavo.models, by a name of letters and digits",
    ("engine/process/entry.py", "ctypes.CDLL"): "prctl(2), which Python has no function for; from the C library",
    ("base/memory.py", "ctypes.CDLL"): "malloc_trim(3), likewise",
    ("engine/process/entry.py", "runpy.run_module"): "a module of ours, named by the process that starts this one",
}
"""(file, finding) -> why it is harmless there."""


def dotted(node: ast.expr) -> str:
    """a.b.c of an expression, or what is left of it."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def findings(tree: ast.AST) -> list[str]:
    """What is dangerous in a module."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] if node.module and node.module.split(".")[0] in MODULES else []
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in BUILTINS or name in CALLS or name.rsplit(".", 1)[-1] in METHODS:
                found.append(name)
            found += [
                f"{keyword.arg}={keyword.value.value}"
                for keyword in node.keywords
                if isinstance(keyword.value, ast.Constant) and (keyword.arg, keyword.value.value) in KEYWORDS
            ]
    return found


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def test_no_source_can_run_bytes_as_code():
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in sources()
        for name in findings(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) <= found, "the list allows what is no longer there"


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import cloudpickle as c",
        "eval(text)",
        "exec(text)",
        "yaml.load(file)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(command, shell=True)",
        "socket.recv_pyobj()",
        "torch.load(path)",
    ],
)
def test_the_check_sees_what_it_looks_for(source):
    assert findings(ast.parse(source))


def test_the_check_lets_harmless_code_pass():
    assert findings(ast.parse("yaml.safe_load(x); re.compile('a'); np.load(path, allow_pickle=False)")) == []


def test_no_assert_looks_at_a_request():
    """Asserts are for invariants of ours: none may be the only check of what a client sends."""
    checks = {
        "server/api/params.py",
        "server/body.py",
        "server/auth.py",
        "server/messages.py",
        "engine/input/validate.py",
    }
    checks |= {"proto/sampling_checks.py", "proto/codec.py", "core/border.py"}
    with_asserts = {
        str(path.relative_to(ROOT))
        for path in sources()
        if any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert with_asserts & checks == set()
    assert all((ROOT / check).is_file() for check in checks)
