"""Contract of the native module.

Arrays are C-contiguous; a wrong dtype or shape is a TypeError, a wrong size a ValueError.
"""

from typing import Any, Literal

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

# ---- native/bind_backend.cpp ------------------------------------------------------------------------------------
# Letters as in kernels/ops.py. Sizes that disagree raise octavo.base.errors.ShapeError naming the symbol.

class Tensor:
    """Rows of float32 or bfloat16 in memory of the arena; freed, and used again, with its last owner."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Literal["float32", "bfloat16"]: ...
    def numpy(self) -> npt.NDArray[Any]:
        """A view: float32, or the bits of bfloat16 as uint16."""

class PackedMatrix:
    """[N, K] in panels of 32 columns, zero until packed; with a bias [N] if one was set.

    gate_width: F of a gated pair whose columns lie in turns (kernels/cpu/packing.py); 0: none.
    """

    def __init__(self, ops: Backend, dtype: str, num_columns: int, k: int, gate_width: int = 0) -> None: ...
    @property
    def num_columns(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def num_bytes(self) -> int: ...
    def set_bias(self, bias: npt.NDArray[np.float32]) -> None: ...

class PackedVector:
    def __init__(self, values: npt.NDArray[np.float32]) -> None: ...

class RopeTable:
    """cos, sin [max_position, D / 2], copied."""

    def __init__(self, cos: npt.NDArray[np.float32], sin: npt.NDArray[np.float32]) -> None: ...

class AttentionOptions:
    """window 0: all keys. softcap 0: none."""

    def __init__(
        self, num_heads: int, num_kv_heads: int, head_dim: int, scale: float, window: int, softcap: float
    ) -> None: ...

class AttentionBlock:
    """Parts are kept alive. See kernels/ops.py."""

    def __init__(
        self,
        layer: int,
        norm: PackedVector,
        qkv: PackedMatrix,
        rope: RopeTable,
        options: AttentionOptions,
        q_norm: PackedVector | None,
        k_norm: PackedVector | None,
        eps: float,
    ) -> None: ...

class FeedForwardBlock:
    """Parts are kept alive. See kernels/ops.py; `gate_up` is a gated pair."""

    def __init__(
        self,
        out: PackedMatrix,
        attention_post_norm: PackedVector | None,
        norm: PackedVector,
        gate_up: PackedMatrix,
        kind: str,
        down: PackedMatrix,
        post_norm: PackedVector | None,
        eps: float,
    ) -> None: ...

class DecoderLayers:
    """All layers, in order. The tuple keeps its parts alive."""

    def __init__(self, layers: tuple[tuple[AttentionBlock, FeedForwardBlock], ...]) -> None: ...

class KvCache:
    """B zeroed blocks. P is 16 or a multiple of 32.

    layers_of_groups: model layers of each group, by their place in the page.
    """

    def __init__(
        self,
        dtype: str,
        num_blocks: int,
        block_size: int,
        num_kv_heads: int,
        head_dim: int,
        layers_of_groups: list[list[int]],
    ) -> None: ...
    @property
    def num_bytes(self) -> int: ...

class StepBatch:
    """positions [T], query_start [S + 1], seq_lens [S]; per group slots [T], block_table [S, max_blocks]; all int32.

    Checked here once, values included, and trusted by the ops. Holds the arrays; they must not change.
    """

    def __init__(
        self,
        cache: KvCache,
        positions: npt.NDArray[np.int32],
        query_start: npt.NDArray[np.int32],
        seq_lens: npt.NDArray[np.int32],
        groups: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]],
    ) -> None: ...

def runnable_isa_levels() -> list[str]:
    """Levels of kernels this processor can run, best first: of amx, avx512_bf16, avx512, avx2, scalar."""

def test_isa_levels() -> list[str]:
    """Levels that only tests select, as far as this processor can run them: of amx_emulated. No option names them."""

class Backend:
    """One level of kernels, one pool of threads, one arena. Ops release the GIL and take turns in the pool."""

    def __init__(self, dtype: str, isa: str, num_threads: int) -> None:
        """isa: auto, scalar, avx2, avx512, avx512_bf16, amx. ValueError if this processor cannot run it."""
    @property
    def isa(self) -> str: ...
    @property
    def num_threads(self) -> int: ...
    @property
    def arena_bytes(self) -> int: ...
    def tensor(self, values: npt.NDArray[np.float32], dtype: str) -> Tensor:
        """A copy of 1 to 3 dimensions, rounded to dtype."""
    def pack_columns(self, matrix: PackedMatrix, first_column: int, rows: npt.NDArray[np.float32]) -> None:
        """rows [n, K] become columns first_column .. first_column + n."""
    def read_block(self, cache: KvCache, block_id: int, page: npt.NDArray[np.float32]) -> None: ...
    def write_block(self, cache: KvCache, block_id: int, page: npt.NDArray[np.float32]) -> None: ...
    def copy_blocks(self, cache: KvCache, pairs: npt.NDArray[np.int64]) -> None:
        """pairs [n, 2] (source, destination), in order."""
    def embedding(self, tokens: npt.NDArray[np.int32], table: PackedMatrix, scale: float) -> Tensor:
        """[T] -> [T, E] float32."""
    def rms_norm(self, x: Tensor, addend: Tensor | None, weight: PackedVector, eps: float) -> tuple[Tensor, Tensor]:
        """[T, E] float32 -> normed [T, E] in the back end's dtype, residual [T, E] float32."""
    def norm_only(self, x: Tensor, weight: PackedVector, eps: float) -> Tensor:
        """[T, E] -> [T, E], float32."""
    def linear(self, x: Tensor, weights: PackedMatrix) -> Tensor:
        """[T, K] in the dtype of the weights -> [T, N] float32."""
    def logits(self, x: Tensor, rows: npt.NDArray[np.int32], head: PackedMatrix, softcap: float) -> Tensor:
        """x [T, E], rows [R] -> [R, V] float32."""
    def gated_activation(self, gate_up: Tensor, kind: str) -> Tensor:
        """[T, 2F] float32 -> [T, F] in the back end's dtype. kind: silu, gelu_tanh."""
    def rotary_write(
        self,
        qkv: Tensor,
        batch: StepBatch,
        cache: KvCache,
        layer: int,
        rope: RopeTable,
        options: AttentionOptions,
        q_norm: PackedVector | None,
        k_norm: PackedVector | None,
        eps: float,
    ) -> Tensor:
        """qkv [T, (H + 2K) * D] float32 -> q [T, H, D] in the back end's dtype; K and V stored."""
    def paged_attention(
        self, q: Tensor, batch: StepBatch, cache: KvCache, layer: int, options: AttentionOptions
    ) -> Tensor:
        """q [T, H, D] -> [T, H * D], both in the back end's dtype."""
    def decode(
        self,
        residual: Tensor,
        batch: StepBatch,
        cache: KvCache,
        layers: DecoderLayers,
        rows: npt.NDArray[np.int32] | None,
    ) -> tuple[Tensor, Tensor]:
        """residual [T, E] float32, rows [R] ascending (None: all) -> behind all layers [R, E] float32, and what the
        heads of the last layer found, [T, H * D] in the back end's dtype."""

# ---- native/bind_sampler.cpp ------------------------------------------------------------------------------------

Described = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int32]]

class RowScalars:
    """Parameters of R rows, arrays [R]; see SampleBatch."""

    def __init__(
        self,
        temperature: npt.NDArray[np.float32],
        top_k: npt.NDArray[np.int32],
        top_p: npt.NDArray[np.float32],
        min_p: npt.NDArray[np.float32],
        repetition_penalty: npt.NDArray[np.float32],
        frequency_penalty: npt.NDArray[np.float32],
        presence_penalty: npt.NDArray[np.float32],
        seeds: npt.NDArray[np.uint64],
        positions: npt.NDArray[np.int64],
        num_logprobs: npt.NDArray[np.int32],
    ) -> None: ...

class RowLists:
    """What few rows have: (row, arrays)."""

    history: list[tuple[int, npt.NDArray[np.int32], npt.NDArray[np.int32]]]
    bias: list[tuple[int, npt.NDArray[np.int32], npt.NDArray[np.float32]]]
    allowed: list[tuple[int, npt.NDArray[np.int32]]]
    allowed_bits: list[tuple[int, npt.NDArray[np.int32]]]
    """Words [ceil(V / 32)]."""
    logprob_ids: list[tuple[int, npt.NDArray[np.int32]]]

NOT_FINITE: int
EXHAUSTED: int
"""Outcomes of a row that has no token; any other outcome has one."""

def sample(
    ops: Backend, logits: npt.NDArray[np.float32], scalars: RowScalars, lists: RowLists
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], tuple[Described | None, ...]]:
    """logits [R, V] -> token ids [R], outcomes [R], (ids, logprobs, ranks) per row."""

def token_logprobs(
    ops: Backend, logits: npt.NDArray[np.float32], token_ids: npt.NDArray[np.int32], num_top: int
) -> list[Described]:
    """Per row `token_ids[r]` first, then the num_top best."""

# ---- native/bind_probe.cpp --------------------------------------------------------------------------------------

def probe_read(ops: Backend, num_bytes: int, num_passes: int, is_huge: bool) -> float:
    """Bytes per second that all threads read together from one region of that size; the best pass."""

def probe_matrix(ops: Backend, num_passes: int) -> float:
    """FLOP/s of all threads together, in the dtype, with weights that stream from each core's second cache."""

def probe_arithmetic(ops: Backend, num_passes: int) -> float:
    """FLOP/s of all threads together, in the dtype, with operands in registers."""

# ---- native/gguf ------------------------------------------------------------------------------------------------

def dequantize_f32(format: str, data: npt.NDArray[np.uint8], out: npt.NDArray[np.float32]) -> None:
    """Whole blocks of a storage format, [bytes], -> out [elements]. Releases the GIL. ValueError: sizes or format."""
