"""What a start is told in the log, in the words of vLLM's CPU back end: people and scripts look for these lines.

Owns: the lines.   Does not own: the times (timeline.py), the logger.
"""

from __future__ import annotations

from collections.abc import Mapping

from octavo.base.units import format_bytes
from octavo.config.answer_options import FOREIGN_BACKENDS, OWN_BACKENDS
from octavo.config.resolved import ResolvedConfig

_LOADING = ("machine", "checkpoint", "kernels", "weights")
_PREPARING = ("KV memory", "warm-up", "rates")


def startup_warnings(config: ResolvedConfig) -> list[str]:
    """What was asked for, is taken, and does not mean what it says."""
    backend = config.options.answers.structured_outputs_config.get("backend")
    if backend not in FOREIGN_BACKENDS:
        return []
    return [
        f"structured_outputs_config.backend={backend!r}: constraints are kept by guidance (llguidance), there is "
        f"no other; use {' or '.join(OWN_BACKENDS)}, or leave it out"
    ]


def startup_lines(config: ResolvedConfig, phases: Mapping[str, float]) -> list[str]:
    """`phases`: of the engine's timeline, in seconds; those that are missing took no time."""
    budget, longest = config.budget, config.model.max_model_len
    loading_s = sum(phases.get(name, 0.0) for name in _LOADING)
    preparing_s = sum(phases.get(name, 0.0) for name in _PREPARING)
    return [
        f"Loading weights took {phases.get('weights', 0.0):.2f} seconds",
        f"Model loading took {format_bytes(budget.weights_bytes)} and {loading_s:.2f} seconds",
        f"CPU KV cache size: {budget.num_kv_tokens:,} tokens, "
        f"Maximum concurrency for {longest:,} tokens per request: {budget.num_kv_tokens / longest:.2f}x",
        f"init engine (profile, create kv cache, warmup model) took {preparing_s:.2f} seconds",
    ]
