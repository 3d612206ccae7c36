"""Costs against counts made one token at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.tiny_models import LLAMA, TINY_SPECS
from fakes.tiny_weights import tensor_shapes
from hypothesis import given
from hypothesis import strategies as st

from octavo.config.model_spec import ModelSpec
from octavo.models.cost import CostModel, num_layer_weights


def count_pairs(new: int, length: int, window: int | None) -> tuple[int, int]:
    """(query-key pairs, distinct keys) of one sequence in one layer, by listing them."""
    seen = [
        range(0 if window is None else max(0, position - window + 1), position + 1)
        for position in range(length - new, length)
    ]
    return sum(map(len, seen)), len(set().union(*seen))


@given(
    name=st.sampled_from(["llama", "mistral_window", "gemma3_text"]),
    sequences=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=1, max_size=4),
    num_rows=st.integers(0, 3),
)
def test_cost_is_the_sum_over_tokens_and_layers(name: str, sequences: list[tuple[int, int]], num_rows: int) -> None:
    spec = TINY_SPECS[name]
    new = [tokens for tokens, _ in sequences]
    lengths = [tokens + before for tokens, before in sequences]
    pairs = reads = 0
    for kind in spec.layer_kinds:
        for tokens, length in zip(new, lengths, strict=True):
            seen, distinct = count_pairs(tokens, length, spec.sliding_window if kind == "sliding_window" else None)
            pairs, reads = pairs + seen, reads + distinct
    head = spec.vocab_size * spec.hidden_size
    layers = spec.num_layers * num_layer_weights(spec)
    kv_elements = 2 * spec.num_kv_heads * spec.head_dim * (reads + sum(new) * spec.num_layers)

    cost = CostModel(spec, weight_bits=16, kv_itemsize=4).step(new, lengths, num_rows)

    assert cost.num_flops == 2 * (sum(new) * layers + num_rows * head) + 4 * spec.num_heads * spec.head_dim * pairs
    weights = layers + (head if num_rows else 0) + sum(new) * spec.hidden_size
    assert cost.num_bytes == 2 * weights + 4 * kv_elements


@pytest.mark.parametrize("spec", [LLAMA, TINY_SPECS["qwen3"]])
def test_layer_weights_are_the_matrices_of_a_layer(spec: ModelSpec) -> None:
    shapes = tensor_shapes(spec)
    matrices = [shape for name, shape in shapes.items() if ".layers.0." in name and len(shape) == 2]
    assert num_layer_weights(spec) == sum(rows * columns for rows, columns in matrices)


def test_quantized_weights_cost_their_bits() -> None:
    full = CostModel(LLAMA, weight_bits=16, kv_itemsize=2).step([1], [1], 1)
    half = CostModel(LLAMA, weight_bits=8, kv_itemsize=2).step([1], [1], 1)
    kv_bytes = 2 * 2 * LLAMA.num_layers * 2 * LLAMA.num_kv_heads * LLAMA.head_dim  # read and written once
    assert half.num_bytes - kv_bytes == (full.num_bytes - kv_bytes) // 2


def test_a_model_of_windows_only_reads_no_more_than_its_windows() -> None:
    spec = replace(LLAMA, layer_kinds=("sliding_window",) * 2, sliding_window=8)
    costs = CostModel(spec, weight_bits=16, kv_itemsize=2)
    assert costs.step([1], [100], 1) == costs.step([1], [1000], 1)
