"""Qwen2.5-Coder-0.5B-Instruct and Gemma-3-270m against transformers: the slow suite."""

from __future__ import annotations

import pytest
from oracle.checker import load_items
from oracle.real_model import find_problems, find_prompt_problems, open_llm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("kernel_backend", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("fixture", "name"), [("qwen_path", "qwen2.5-coder-0.5b-instruct"), ("gemma_path", "gemma-3-270m")]
)
def test_text_and_logprobs_of_all_items_are_those_of_transformers(
    request: pytest.FixtureRequest, fixture: str, name: str, kernel_backend: str
) -> None:
    items = load_items(name)
    with open_llm(request.getfixturevalue(fixture), kernel_backend=kernel_backend) as llm:
        assert find_prompt_problems(llm, items) == []
        assert find_problems(llm, items) == []
