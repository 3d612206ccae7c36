"""Names for the integers and strings that identify things. `_id` is identity, `_idx` a position."""

from __future__ import annotations

from typing import NewType

RequestId = NewType("RequestId", str)
TokenId = NewType("TokenId", int)
BlockId = NewType("BlockId", int)
StepId = NewType("StepId", int)
Epoch = NewType("Epoch", int)
RowIdx = NewType("RowIdx", int)

NULL_BLOCK = BlockId(0)
"""Block 0 pads block tables. It is never allocated, never freed and never read unmasked."""
