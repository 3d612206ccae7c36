"""Tiny models of every architecture against logits of Hugging Face transformers (made by make_tiny.py)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fakes.batches import Chunk
from fakes.tiny_models import TINY_SPECS
from fakes.tiny_weights import tiny_tensors
from oracle.tiny_run import TinyRun, load_oracle

from octavo.config.model_spec import ModelSpec, RopeSpec

TOLERANCE = 1e-4


def run_whole(spec: ModelSpec, prompt: np.ndarray, tensors: dict[str, np.ndarray] | None = None) -> np.ndarray:
    """Logits [T, V] of a prompt computed alone in one step."""
    return TinyRun(spec, tensors).run([[Chunk(0, 0, prompt)]])


@pytest.mark.parametrize("name", TINY_SPECS)
def test_logits_are_those_of_transformers(name: str) -> None:
    prompt, positions, expected = load_oracle(name)
    assert expected.std() >= 1
    logits = run_whole(TINY_SPECS[name], prompt)[positions]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("llama_rope_llama3", {"rope": RopeSpec(theta=10000.0)}),
        ("llama_rope_llama3", {"rope": RopeSpec(theta=10000.0, scaling="linear", factor=8.0)}),
        ("llama_rope_linear", {"rope": RopeSpec(theta=10000.0)}),
        ("llama", {"rope": RopeSpec(theta=10000.0, scaling="linear", factor=4.0)}),
        ("llama", {"rope": RopeSpec(theta=10001.0)}),
        ("mistral_window", {"layer_kinds": ("full", "full")}),
        ("mistral_window", {"sliding_window": 19}),
        ("mistral_window", {"sliding_window": 21}),
        ("gemma3_text", {"rope_local": RopeSpec(theta=1000000.0)}),
        ("gemma3_text", {"rope": RopeSpec(theta=10000.0)}),
        ("gemma3_text", {"attention_scale": 24**-0.5}),
        ("gemma3_text", {"activation": "silu"}),
        ("gemma3_text_linear", {"rope": RopeSpec(theta=1000000.0)}),
    ],
)
def test_a_wrong_variant_is_outside_the_tolerance(name: str, change: dict[str, object]) -> None:
    prompt, positions, expected = load_oracle(name)
    wrong = replace(TINY_SPECS[name], **change)  # type: ignore[arg-type]
    logits = run_whole(wrong, prompt, tiny_tensors(TINY_SPECS[name]))[positions]
    assert np.abs(logits - expected).max() > 10 * TOLERANCE


def test_interleaved_rotary_pairs_are_outside_the_tolerance() -> None:
    spec = TINY_SPECS["llama"]
    prompt, positions, expected = load_oracle("llama")
    tensors = tiny_tensors(spec)
    for name, values in tensors.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            pairs = values.reshape(-1, spec.head_dim // 2, 2, spec.hidden_size)
            tensors[name] = pairs.swapaxes(1, 2).reshape(values.shape)
    logits = run_whole(spec, prompt, tensors)[positions]
    assert np.abs(logits - expected).max() > 10 * TOLERANCE


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TINY_SPECS)
def test_chunks_give_the_bits_of_the_whole(name: str, dtype: str) -> None:
    prompt, _, _ = load_oracle(name)
    whole = TinyRun(TINY_SPECS[name], dtype=dtype).run([[Chunk(0, 0, prompt)]])
    for size in (1, 16, 30):
        steps = [[Chunk(0, start, prompt[start : start + size])] for start in range(0, len(prompt), size)]
        np.testing.assert_array_equal(TinyRun(TINY_SPECS[name], dtype=dtype).run(steps), whole)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", TINY_SPECS)
def test_a_batch_gives_the_bits_of_the_lone_run(name: str, dtype: str) -> None:
    prompt, _, _ = load_oracle(name)
    alone = TinyRun(TINY_SPECS[name], dtype=dtype).run([[Chunk(0, 0, prompt)]])
    others = [Chunk(1, 0, prompt[5:50]), Chunk(2, 0, prompt[7:8])]
    mixed = [
        [others[0], Chunk(0, 0, prompt[:37]), others[1]],
        [Chunk(1, 45, prompt[3:4]), Chunk(2, 1, prompt[9:40]), Chunk(0, 37, prompt[37:])],
    ]
    np.testing.assert_array_equal(TinyRun(TINY_SPECS[name], dtype=dtype).run(mixed), alone)
