"""Contract of the native module. Arrays are C-contiguous; a wrong dtype or shape is a TypeError, a wrong size a ValueError."""

import numpy as np
import numpy.typing as npt

# ---- native/host ------------------------------------------------------------------------------------------------

class CpuFeatures:
    """What the processor and the kernel allow."""

    @property
    def avx2(self) -> bool: ...
    @property
    def avx512(self) -> bool: ...
    @property
    def avx512_bf16(self) -> bool: ...
    @property
    def avx512_vnni(self) -> bool: ...
    @property
    def amx_bf16(self) -> bool: ...

def detect_cpu_features() -> CpuFeatures: ...

# ---- native/gguf ------------------------------------------------------------------------------------------------

def dequantize_f32(format: str, data: npt.NDArray[np.uint8], out: npt.NDArray[np.float32]) -> None:
    """Whole blocks of a storage format, [bytes], -> out [elements]. Releases the GIL. ValueError: sizes or format."""

def dequantize_bf16(format: str, data: npt.NDArray[np.uint8], out: npt.NDArray[np.uint16]) -> None:
    """The same into the bits of bfloat16, rounded to nearest even."""
