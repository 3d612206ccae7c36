"""Check that imports point down. The table below is the architecture; an edge that is not in it is an error.

A folder may always import itself. TYPE_CHECKING imports obey the same table. An edge written "late:x" is allowed inside
functions only: it is how a composition root chooses implementations and how the command line starts fast.
`core` is pure: beside its edges it may import only the modules of PURE.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "octavo"

EDGES: dict[str, set[str]] = {
    "base": set(),
    "config": {"base", "proto", "late:_native"},
    "proto": {"base"},
    "core": {"proto", "base"},
    "obs": {"core", "proto", "base"},
    "kernels": {"proto", "base", "_native", "late:_native"},
    "grammar": {"proto", "base"},
    "layers": {"kernels", "config", "base"},
    "attention": {"kernels", "config", "proto", "base"},
    "loading": {"config", "base", "_native", "late:_native"},
    "models": {"layers", "attention", "kernels", "config", "proto", "base"},
    "runner": {"models", "attention", "kernels", "grammar", "proto", "config", "base"},
    "executor": {"proto", "base", "late:runner"},
    "fault": {"proto", "base"},
    "parsers": {"proto", "base"},
    "engine": {
        "core", "executor", "loading", "grammar", "fault", "obs", "proto", "config", "base", "outputs",
        "late:runner", "late:models", "late:kernels",
    },
    "outputs": {"proto", "base"},
    "server": {"engine", "fault", "loading", "obs", "parsers", "proto", "config", "base", "outputs"},
    "llm": {"engine", "loading", "proto", "config", "base", "outputs"},
    "bench": {"engine", "loading", "proto", "config", "base", "outputs", "late:llm", "late:core", "late:kernels",
              "late:loading", "late:models", "late:_native", "core", "kernels"},
    "cli": {"base", "config", "late:llm", "late:engine", "late:loading", "late:bench", "late:server", "late:config",
            "late:proto", "late:outputs", "late:_native", "late:__init__"},
    "__init__": {"late:llm", "late:outputs", "late:proto", "late:config", "late:engine", "late:base"},
}  # fmt: skip
TYPE_ONLY_OK = {"__init__"}
"""Files whose TYPE_CHECKING imports are their public face, not an edge."""
PURE_FOLDERS = {"core"}
PURE = {
    "__future__", "abc", "array", "bisect", "collections", "dataclasses", "enum", "functools", "hashlib", "heapq",
    "itertools", "math", "msgspec", "operator", "struct", "sys", "typing",
}  # fmt: skip
TORCH_ALLOWED: set[str] = set()
"""Folders that may import torch, late. None before the CUDA back end exists."""
BANNED = {"pickle", "torch", "transformers", "cloudpickle", "dill"}


def owner_of(path: Path) -> str:
    """The folder (or top-level module) a file belongs to."""
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(tree: ast.Module, is_type_only_ok: bool) -> Iterator[tuple[int, str, bool]]:
    """(line, dotted module, is_late) of each import."""

    def visit(node: ast.AST, late: bool) -> Iterator[tuple[int, str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield child.lineno, alias.name, late
            elif isinstance(child, ast.ImportFrom):
                if child.level:
                    yield child.lineno, "." * child.level + (child.module or ""), late
                elif child.module == "octavo":
                    for alias in child.names:
                        yield child.lineno, f"octavo.{alias.name}", late
                else:
                    yield child.lineno, child.module or "", late
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            type_block = (
                is_type_only_ok
                and isinstance(child, ast.If)
                and isinstance(child.test, ast.Name)
                and child.test.id == "TYPE_CHECKING"
            )
            yield from visit(child, late or is_function or type_block)

    yield from visit(tree, False)


def check_file(path: Path) -> list[str]:
    """Every import of this file that the table does not allow."""
    owner = owner_of(path)
    if owner not in EDGES:
        return [f"{path}: folder {owner!r} is not in the table of tools/lint_imports.py"]
    allowed = EDGES[owner]
    problems = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for line, module, late in imports_of(tree, owner in TYPE_ONLY_OK):
        where = f"{path.relative_to(ROOT.parent.parent)}:{line}"
        if module.startswith("."):
            problems.append(f"{where}: relative import {module}; write the full name")
            continue
        top = module.split(".")[0]
        if top == "octavo":
            parts = module.split(".")
            target = parts[1] if len(parts) > 1 else "__init__"
            if target in (owner, "__version__"):
                continue
            if target in allowed or (late and f"late:{target}" in allowed):
                continue
            how = " (allowed inside functions only)" if f"late:{target}" in allowed else ""
            problems.append(f"{where}: {owner} may not import {target}{how}")
        elif top in BANNED and owner not in TORCH_ALLOWED:
            problems.append(f"{where}: {top} is not allowed in {owner}")
        elif owner in PURE_FOLDERS and top not in PURE:
            problems.append(f"{where}: {owner} is pure and may not import {top}")
    return problems


def main() -> int:
    problems = [problem for path in sorted(ROOT.rglob("*.py")) for problem in check_file(path)]
    for problem in problems:
        print(problem)
    print(f"imports: {len(problems)} problems" if problems else "imports: all edges point down")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
