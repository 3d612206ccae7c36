"""The lines that people look for in the log of a start."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from octavo.config.resolved import MemoryBudget
from octavo.engine.startup_log import startup_lines, startup_warnings


def with_backend(*name: str) -> SimpleNamespace:
    answers = SimpleNamespace(structured_outputs_config=dict(zip(["backend"], name, strict=False)))
    return SimpleNamespace(options=SimpleNamespace(answers=answers))


@pytest.mark.parametrize("name", ["xgrammar", "outlines", "lm-format-enforcer"])
def test_a_back_end_that_is_not_here_is_told_who_keeps_constraints(name: str) -> None:
    (warning,) = startup_warnings(with_backend(name))
    assert f"structured_outputs_config.backend='{name}'" in warning
    assert "use auto or guidance" in warning


@pytest.mark.parametrize("name", [[], ["auto"], ["guidance"]])
def test_the_back_end_that_is_here_is_no_news(name: list[str]) -> None:
    assert startup_warnings(with_backend(*name)) == []


def test_lines_have_vllms_words():
    budget = MemoryBudget(
        weights_bytes=3 << 20,
        kv_bytes=0,
        work_bytes=0,
        available_bytes=0,
        num_blocks=129,
        block_size=32,
        num_kv_tokens=4096,
    )
    config = SimpleNamespace(budget=budget, model=SimpleNamespace(max_model_len=1024))
    phases = {"machine": 0.25, "weights": 1.5, "KV memory": 0.5, "warm-up": 0.25, "front end": 9.0}
    assert startup_lines(config, phases) == [
        "Loading weights took 1.50 seconds",
        "Model loading took 3.00 MiB and 1.75 seconds",
        "CPU KV cache size: 4,096 tokens, Maximum concurrency for 1,024 tokens per request: 4.00x",
        "init engine (profile, create kv cache, warmup model) took 0.75 seconds",
    ]
