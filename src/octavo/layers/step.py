"""What every layer of one forward pass is given beside its input."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.kernels.ops import CacheHandle, ForwardBatch


@dataclass(frozen=True, slots=True)
class StepContext:
    """The batch of this step and the cache it reads and writes. Never changed by a layer."""

    batch: ForwardBatch
    cache: CacheHandle
