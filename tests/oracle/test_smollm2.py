"""SmolLM2-135M-Instruct against transformers: all items, greedy, float32, reference back end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from oracle.checker import load_items
from oracle.real_model import find_problems, find_prompt_problems, open_llm

from octavo import LLM

pytestmark = pytest.mark.needs_smollm2
ITEMS = load_items("smollm2-135m-instruct")


@pytest.fixture(scope="module")
def llm(smollm2_path: Path) -> Iterator[LLM]:
    with open_llm(smollm2_path, kernel_backend="reference") as llm:
        yield llm


@pytest.mark.timeout(300)
def test_text_and_logprobs_of_all_items_are_those_of_transformers(llm: LLM) -> None:
    assert find_problems(llm, ITEMS) == []


def test_prompts_are_rendered_and_tokenized_as_by_transformers(llm: LLM) -> None:
    assert find_prompt_problems(llm, ITEMS) == []
