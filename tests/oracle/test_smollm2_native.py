"""SmolLM2-135M-Instruct on the native back end against transformers: float32 to the token, bfloat16 in agreement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracle.checker import Item, load_items
from oracle.real_model import find_problems, open_llm

from octavo import LLM, SamplingParams

pytestmark = [pytest.mark.needs_smollm2, pytest.mark.timeout(300)]
ITEMS = load_items("smollm2-135m-instruct")


def test_text_and_logprobs_in_float32_are_those_of_transformers(smollm2_path: Path) -> None:
    with open_llm(smollm2_path, kernel_backend="cpu") as llm:
        assert find_problems(llm, ITEMS) == []


def test_bfloat16_agrees_with_the_float32_oracle_token_by_token(smollm2_path: Path) -> None:
    with open_llm(smollm2_path, kernel_backend="cpu", dtype="bfloat16") as llm:
        compared = [one for item, result in zip(ITEMS, force(llm, ITEMS), strict=True) for one in agree(item, result)]
    is_same, difference = (np.array(column) for column in zip(*compared, strict=True))
    assert len(compared) > 500
    assert is_same.mean() >= 0.985
    assert np.abs(difference).mean() <= 0.02


def force(llm: LLM, items: list[Item]) -> list[list[dict[int, float]]]:
    """Logprobs at each position of the oracle's outputs, which the model is given as part of the prompt."""
    prompts = [{"prompt_token_ids": item["prompt_token_ids"] + item["output_token_ids"]} for item in items]
    results = llm.generate(prompts, SamplingParams(max_tokens=1, prompt_logprobs=1), use_tqdm=False)
    return [
        [{token: one.logprob for token, one in (at or {}).items()} for at in result.prompt_logprobs or []]
        for result in results
    ]


def agree(item: Item, logprobs: list[dict[int, float]]) -> list[tuple[bool, float]]:
    """(is the oracle's token the best, difference of its logprob) at each output position."""
    start = len(item["prompt_token_ids"])
    compared = []
    for position, token_id in enumerate(item["output_token_ids"]):
        found, top = logprobs[start + position], dict(item["top_logprobs"][position])
        compared.append((found[token_id] >= max(found.values()), found[token_id] - top[token_id]))
    return compared
