"""Comparison of an engine's greedy output with the stored output of Hugging Face transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "data" / "oracle"
NEAR_TIE = 1e-4
"""Where the two best tokens are closer than this, either may be taken, and what follows may differ."""
LOGPROB_TOLERANCE = 1e-3

Item = Mapping[str, Any]


def load_items(model: str) -> list[Item]:
    """The items of one file: `id`, `prompt_token_ids`, `output_token_ids`, `output_text`, `top_logprobs`, ..."""
    items: list[Item] = json.loads((FOLDER / f"{model}.json").read_text(encoding="utf-8"))["items"]
    return items


def first_near_tie(item: Item) -> int:
    """Output position of the first near-tie; the number of positions where there is none."""
    for position, top in enumerate(item["top_logprobs"]):
        if top[0][1] - top[1][1] < NEAR_TIE:
            return position
    return len(item["top_logprobs"])


def compare_with_oracle(
    item: Item,
    token_ids: Sequence[int],
    logprobs: Sequence[Mapping[int, float]],
    *,
    tolerance: float = LOGPROB_TOLERANCE,
) -> list[str]:
    """What is wrong with a greedy continuation of the item's prompt; empty: nothing.

    logprobs: for each position token id -> natural-log probability, of more tokens than the oracle lists. Tokens must
    agree up to the first near-tie, and logprobs of the listed tokens as long as the tokens before agree.
    """
    expected = item["output_token_ids"]
    for position, (token_id, top) in enumerate(zip(expected, item["top_logprobs"], strict=True)):
        where = f"{item['id']} position {position}"
        if position >= len(token_ids) or position >= len(logprobs):
            return [f"{where}: the output ends, the oracle goes on with {token_id}"]
        problems = [
            f"{where}: token {listed} has logprob {logprobs[position].get(listed)}, the oracle {value}"
            for listed, value in top
            if not abs(logprobs[position].get(listed, float("inf")) - value) <= tolerance
        ]
        if problems:
            return problems
        if token_ids[position] != token_id:
            is_other_of_tie = top[0][1] - top[1][1] < NEAR_TIE and token_ids[position] in (top[0][0], top[1][0])
            return [] if is_other_of_tie else [f"{where}: token {token_ids[position]}, the oracle {token_id}"]
    if len(token_ids) > len(expected):
        return [f"{item['id']}: the output goes on after the oracle's {len(expected)} tokens"]
    return []
