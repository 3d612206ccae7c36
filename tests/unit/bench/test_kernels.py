"""Benchmark of the native kernels: limits, shares, the check that comes first."""

from __future__ import annotations

import json

import pytest
from fakes.native import native_ops

from octavo.bench import kernels
from octavo.bench.kernel_cases import find_differences
from octavo.bench.kernel_decoder import find_decoder_differences
from octavo.bench.kernel_shapes import SHAPES, KernelShape
from octavo.bench.kernels import KernelBenchOptions, MachineLimits, run_kernels

TINY = KernelShape(
    name="tiny", num_layers=2, hidden=32, intermediate=48, num_heads=4, num_kv_heads=2, head_dim=16, vocab=300
)


def test_the_limit_is_the_larger_of_moving_and_computing() -> None:
    limits = MachineLimits({1000: (100.0, 50.0), 10_000: (20.0, 10.0)}, flops=1000.0, peak_flops=1200.0)
    assert limits.seconds(500, 0) == 5
    assert limits.seconds(5000, 0) == 250
    assert limits.seconds(50_000, 0) == 2500
    assert limits.seconds(500, 9000) == 9


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_kernels_agree_with_the_reference_before_they_are_measured(dtype: str) -> None:
    assert find_differences(native_ops(dtype), TINY) == []
    assert find_decoder_differences(native_ops(dtype), TINY) == []


def test_a_layer_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = native_ops("float32")
    decode = type(ops).decode
    monkeypatch.setattr(type(ops), "decode", lambda self, x, layers, *rest: decode(self, x, layers[::-1], *rest))
    assert len(find_decoder_differences(ops, TINY)) == 1


def test_the_layers_are_made_once_for_all_numbers_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op table keeps what it has run: layers for each number of rows would stay in memory together."""
    seen = []
    decode = kernels.CpuOps.decode
    monkeypatch.setitem(SHAPES, "tiny", TINY)
    monkeypatch.setattr(
        kernels.CpuOps, "decode", lambda self, x, layers, *rest: seen.append(layers) or decode(self, x, layers, *rest)
    )
    for _, case in kernels._cases(native_ops("float32"), KernelBenchOptions(model="tiny", rows=(1, 8, 80), context=40)):
        if case.name == "decode (all layers)":
            case.run()
    assert len(seen) >= 3
    assert len({id(layers) for layers in seen}) == 1


def test_the_report_has_a_line_for_each_kernel_and_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "tiny", TINY)
    monkeypatch.setattr(kernels, "WORKING_SETS", (4096,))
    monkeypatch.setattr(kernels, "_MIN_SECONDS", 0.0)
    report = run_kernels(KernelBenchOptions(model="tiny", rows=(1, 80), context=40, num_threads=1))
    lines = [(result.name, result.rows) for result in report.results]
    assert ("linear qkv", 1) in lines
    assert ("paged_attention", 80) in lines
    assert ("decode (all layers)", 80) in lines
    assert ("sample greedy", 1) in lines
    assert ("sample greedy", 80) not in lines
    assert all(result.seconds > 0 and result.limit_seconds > 0 for result in report.results)
    assert "matrix rate" in str(report)
    assert report.limits.flops > 0
    assert report.limits.peak_flops > 0
    assert json.loads(json.dumps(report.as_json()))["isa"] == report.isa
