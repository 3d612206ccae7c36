"""The roof is measured with the kernels that steps use."""

from __future__ import annotations

import pytest

from octavo.kernels import rates
from octavo.kernels.dispatch import make_ops


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rates_are_those_of_a_machine(monkeypatch, dtype):
    monkeypatch.setattr(rates, "_NUM_READ_BYTES", 1 << 20)
    monkeypatch.setattr(rates, "_NUM_QUERIES", 8)
    found = rates.measure_rates(make_ops("reference", dtype, num_threads=1), num_threads=1)
    assert 1e8 < found.bytes_per_s < 1e13
    assert 1e7 < found.flops_per_s < 1e16
