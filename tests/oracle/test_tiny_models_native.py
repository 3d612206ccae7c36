"""Tiny models of every architecture in bfloat16 on the native back end: near transformers' float32, one text."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.batches import Chunk
from fakes.native import each_matrix_level
from fakes.tiny_models import TINY_SPECS
from oracle.tiny_run import TinyRun, load_oracle

MEAN_TOLERANCE = 0.02
"""Of the logits' standard deviation: what rounding weights and inputs to 8 bits leaves."""


def make_run(name: str, isa: str) -> TinyRun:
    return TinyRun(TINY_SPECS[name], dtype="bfloat16", backend="cpu", isa=isa, block_size=32)


@each_matrix_level
@pytest.mark.parametrize("name", TINY_SPECS)
def test_logits_are_those_of_transformers_but_for_rounding(name: str, isa: str) -> None:
    prompt, positions, expected = load_oracle(name)
    logits = make_run(name, isa).run([[Chunk(0, 0, prompt)]])[positions]
    assert np.abs(logits - expected).mean() <= MEAN_TOLERANCE * expected.std()


@each_matrix_level
@pytest.mark.parametrize("name", ["llama", "gemma3_text"])
def test_neither_chunks_nor_company_change_a_bit(name: str, isa: str) -> None:
    prompt, _, _ = load_oracle(name)
    whole = make_run(name, isa).run([[Chunk(0, 0, prompt)]])
    one_by_one = [[Chunk(0, at, prompt[at : at + 1])] for at in range(len(prompt))]
    np.testing.assert_array_equal(make_run(name, isa).run(one_by_one), whole)
    mixed = [
        [Chunk(1, 0, prompt[5:50]), Chunk(0, 0, prompt[:37]), Chunk(2, 0, prompt[7:8])],
        [Chunk(1, 45, prompt[3:4]), Chunk(2, 1, prompt[9:40]), Chunk(0, 37, prompt[37:])],
    ]
    np.testing.assert_array_equal(make_run(name, isa).run(mixed), whole)
