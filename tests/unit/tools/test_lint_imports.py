"""The checker itself is checked: it must find the edges it is there to forbid."""

import ast
import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "lint_imports.py"


@pytest.fixture(scope="module")
def lint():
    spec = importlib.util.spec_from_file_location("lint_imports", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def problems_of(lint, tmp_path, monkeypatch):
    monkeypatch.setattr(lint, "ROOT", tmp_path / "src" / "octavo")

    def check(folder, text):
        path = tmp_path / "src" / "octavo" / folder / "x.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return lint.check_file(path)

    return check


def test_an_edge_up_is_found(problems_of):
    assert "may not import runner" in problems_of("core", "from octavo.runner.rows import RowTable")[0]


def test_the_core_may_not_read_the_clock(problems_of):
    assert "may not import time" in problems_of("core", "import time")[0]


def test_torch_is_banned(problems_of):
    assert "torch is not allowed" in problems_of("kernels", "def f():\n    import torch")[0]


def test_a_late_edge_is_allowed_inside_a_function_only(problems_of):
    assert problems_of("cli", "def run():\n    from octavo.llm import LLM") == []


def test_a_late_edge_at_the_top_is_found(problems_of):
    assert "inside functions only" in problems_of("cli", "from octavo.llm import LLM")[0]


def test_relative_imports_are_found(problems_of):
    assert "relative import" in problems_of("base", "from . import errors")[0]


def test_imports_are_found_at_any_depth(lint):
    tree = ast.parse("class A:\n    def f(self):\n        if True:\n            import os")
    assert [(module, late) for _, module, late in lint.imports_of(tree, False)] == [("os", True)]
