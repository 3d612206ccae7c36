"""SampleBatch with everything switched off but what a test names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from octavo.kernels.ops import SampleBatch

_NUMBERS = {
    "temperature": (np.float32, 0.0),
    "top_k": (np.int32, 0),
    "top_p": (np.float32, 1.0),
    "min_p": (np.float32, 0.0),
    "repetition_penalty": (np.float32, 1.0),
    "frequency_penalty": (np.float32, 0.0),
    "presence_penalty": (np.float32, 0.0),
    "seeds": (np.uint64, 0),
    "positions": (np.int64, 0),
    "num_logprobs": (np.int32, -1),
}
_LISTS = ("history", "bias", "allowed", "allowed_bits", "logprob_token_ids")


def pack_bits(allowed: Any) -> npt.NDArray[np.int32]:
    """Truth values [V] as words [ceil(V / 32)], the lowest bit first."""
    padded = np.zeros(-(-len(allowed) // 32) * 32, np.uint8)
    padded[: len(allowed)] = allowed
    return np.packbits(padded, bitorder="little").view("<i4").astype(np.int32)


def sample_batch(num_rows: int = 1, **values: Any) -> SampleBatch:
    """Greedy rows without logprobs; a keyword gives one value for all rows, or a list with one a row."""
    fields: dict[str, Any] = {}
    for name, (dtype, default) in _NUMBERS.items():
        fields[name] = np.array(np.broadcast_to(values.pop(name, default), num_rows), dtype)
    for name in _LISTS:
        value = values.pop(name, None)
        fields[name] = tuple(value) if isinstance(value, list) else (value,) * num_rows
    if values:
        raise TypeError(f"SampleBatch has no field {sorted(values)}")
    return SampleBatch(**fields)
