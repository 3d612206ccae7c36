"""Which fault case is driven where, and which do not apply yet: one table for all of tests/data/fault_cases.jsonl.

Most are driven by tests/server/faults; `ELSEWHERE` are those driven by the files named, `NOT_YET` those that cannot
happen, with the reason. A case in none of them, or in two, fails a test.
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES: dict[str, dict[str, str]] = {
    case["id"]: case
    for line in (ROOT / "tests/data/fault_cases.jsonl").read_text(encoding="utf-8").splitlines()
    if (case := json.loads(line))
}

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "S65": ("tests/unit/core/kv/test_hashing.py",),
    "S66": ("tests/unit/core/kv/test_hashing.py",),
    "S72": ("tests/unit/tools/test_dangerous_calls.py",),
    "S74": ("tests/unit/loading/test_fuzz.py", "tests/unit/loading/test_safetensors.py"),
    "S76": ("tests/unit/loading/test_hf_checkpoint.py", "tests/unit/loading/test_hf_tokenizer.py"),
    "F09": ("tests/unit/core/test_scheduler.py", "tests/unit/core/test_planning.py"),
    "F10": ("tests/unit/executor/test_inproc.py", "tests/kernels/test_native_attention.py"),
    "F20": ("tests/unit/core/test_planning.py",),
    "F22": ("tests/unit/core/test_planning.py",),
    "F23": ("tests/property/test_any_interleaving.py",),
    "F24": ("tests/property/test_any_interleaving.py",),
    "F26": ("tests/unit/core/test_planning.py", "tests/unit/core/kv/test_manager.py"),
    "F27": ("tests/unit/core/test_scheduler.py",),
    "F32": ("tests/property/test_any_interleaving.py",),
    "F33": ("tests/property/test_any_interleaving.py", "tests/unit/core/test_steps_in_flight.py"),
    "F34": ("tests/unit/core/test_steps_in_flight.py",),
    "F35": ("tests/property/test_any_interleaving.py", "tests/unit/core/kv/test_any_history.py"),
    "F36": ("tests/onetext/test_random_model.py",),
    "F63": ("tests/unit/core/test_scheduler.py",),
    "F71": ("tests/unit/engine/output/test_detokenize.py", "tests/unit/engine/output/test_tokenizer_texts.py"),
    "F81": ("tests/fault/test_kill_engine.py",),
    "F96": ("tests/fault/test_kill_engine.py",),
}
"""Case -> the files that drive it."""

_GRAMMAR = "structured output is not in this release; that it is refused is case S50"
_OFFLOAD = "KV tiers, connectors and asynchronous loads are not in this release"
_PARALLEL = "one engine, one worker: data and pipeline parallelism are not in this release"
_TOOLS = "tool call parsers are not in this release; that they are refused is case S61"
NOT_YET: dict[str, str] = {
    "S51": _GRAMMAR, "S52": _GRAMMAR, "S53": _GRAMMAR, "S55": _GRAMMAR, "S56": _GRAMMAR, "S57": _GRAMMAR,
    "S59": _GRAMMAR, "F01": _GRAMMAR, "F02": _GRAMMAR, "F03": _GRAMMAR, "F05": _GRAMMAR, "F06": _GRAMMAR,
    "F07": _GRAMMAR, "S62": _TOOLS, "S78": _TOOLS, "F75": _TOOLS, "S68": _OFFLOAD, "F39": _OFFLOAD, "F40": _OFFLOAD,
    "F41": _OFFLOAD, "F42": _OFFLOAD, "F50": _OFFLOAD, "F51": _OFFLOAD, "F52": _OFFLOAD, "F53": _OFFLOAD,
    "F54": _OFFLOAD, "F55": _OFFLOAD, "F57": _OFFLOAD, "F58": _OFFLOAD, "F59": _OFFLOAD, "F60": _OFFLOAD,
    "F94": _OFFLOAD, "F95": _OFFLOAD, "F88": _PARALLEL, "F89": _PARALLEL, "F90": _PARALLEL, "F91": _PARALLEL,
    "F13": "adapters (LoRA) are not in this release",
    "F61": "weights cannot be updated and the engine cannot sleep in this release",
    "F98": "the simulator of whole deployments is not in this release; histories of the core are property tests",
}  # fmt: skip
"""Case -> why it cannot happen yet."""
