"""A real model under the oracle's prompts, through the public API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oracle.checker import Item, compare_with_oracle, first_near_tie

from octavo import LLM, SamplingParams

_NUM_LOGPROBS = 8
"""More than the five listed, so that a near-tie for the fifth place hides none of them."""


def open_llm(path: Path, **options: Any) -> LLM:
    """The engine the oracle is compared with: float32, memory enough for all items at once."""
    fixed = {"dtype": "float32", "max_model_len": 2048, "max_num_seqs": 32, "kv_cache_memory_bytes": "1G"}
    return LLM(model=str(path), **(fixed | options))


def find_problems(llm: LLM, items: Sequence[Item]) -> list[str]:
    """Continue all items greedily in one call and compare tokens, logprobs and text."""
    params = [
        SamplingParams(temperature=0.0, max_tokens=len(item["output_token_ids"]), logprobs=_NUM_LOGPROBS)
        for item in items
    ]
    prompts = [{"prompt_token_ids": item["prompt_token_ids"]} for item in items]
    problems: list[str] = []
    for item, result in zip(items, llm.generate(prompts, params, use_tqdm=False), strict=True):
        output = result.outputs[0]
        logprobs = [{token_id: one.logprob for token_id, one in at.items()} for at in output.logprobs or []]
        problems += compare_with_oracle(item, output.token_ids, logprobs)
        has_no_tie = first_near_tie(item) == len(item["output_token_ids"])
        if has_no_tie and output.text != item["output_text"]:
            problems.append(f"{item['id']}: text {output.text!r}, the oracle {item['output_text']!r}")
    return problems


def find_prompt_problems(llm: LLM, items: Sequence[Item]) -> list[str]:
    """Render and tokenize all prompts and compare the ids."""
    tokenizer = llm.get_tokenizer()
    problems = []
    for item in items:
        if item["kind"] == "chat":
            token_ids = tokenizer.apply_chat_template(item["messages"], tokenize=True)
        else:
            token_ids = tokenizer.encode(item["prompt"])
        if token_ids != item["prompt_token_ids"]:
            problems.append(f"{item['id']}: {token_ids}, the oracle {item['prompt_token_ids']}")
    return problems
