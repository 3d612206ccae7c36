"""Report lines per folder, and refuse files over 500 lines and functions over 80. Files over 300 are listed."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (("src", "*.py"), ("native", "*.cpp"), ("native", "*.h"), ("tests", "*.py"), ("tools", "*.py"))
MAX_FILE_LINES = 500
SMELL_FILE_LINES = 300
MAX_FUNCTION_LINES = 80


def long_functions(path: Path) -> list[tuple[int, str]]:
    """(lines, where) of each function over the limit."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                found.append((lines, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"))
    return found


def main() -> int:
    totals: Counter[str] = Counter()
    smells: list[tuple[int, Path]] = []
    problems: list[str] = []
    for folder, pattern in SOURCES:
        for path in sorted((ROOT / folder).rglob(pattern)):
            relative = path.relative_to(ROOT)
            lines = len(path.read_text(encoding="utf-8").splitlines())
            depth = 3 if folder == "src" else 2 if folder == "tests" else 1
            totals["/".join(relative.parts[:depth]) if len(relative.parts) > depth else str(relative.parent)] += lines
            if lines > MAX_FILE_LINES:
                problems.append(f"{relative}: {lines} lines, more than {MAX_FILE_LINES}")
            elif lines > SMELL_FILE_LINES:
                smells.append((lines, relative))
            if path.suffix == ".py":
                problems += [f"{where}: {n} lines, more than {MAX_FUNCTION_LINES}" for n, where in long_functions(path)]
    for name, lines in sorted(totals.items()):
        print(f"{lines:7,}  {name}")
    print(f"{sum(totals.values()):7,}  in all")
    for lines, relative in sorted(smells, reverse=True):
        print(f"over {SMELL_FILE_LINES} lines: {relative} ({lines})")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
