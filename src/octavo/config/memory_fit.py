"""Deal out memory: how many KV blocks, and how long a sequence may be.

Owns: the arithmetic between bytes, blocks and tokens.   Does not own: reading the machine (machine.py).
The pool is the smaller of half the memory left beside weights and work, and of what `max_num_seqs` sequences of
`max_model_len` tokens need. Block counts include the null block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.base.units import ceil_div, format_bytes
from octavo.config.model_options import Dtype
from octavo.config.model_spec import ModelSpec
from octavo.config.option import AUTO, Auto
from octavo.proto.kv import KvCacheSpec, KvGroup, deal_layers, peak_blocks

_PROCESS_BYTES = 192 * 2**20
"""Interpreter, libraries, tokenizer and buffers (docs/architecture.md asks for less than 250 MB beside the model)."""
_MAX_SLOTS = 2**31 - 1
"""Slots are int32: block id x block size + offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest:
    """What is asked of the memory, and how much there is."""

    spec: ModelSpec
    dtype: Dtype
    storage_dtype: Dtype
    """What the back end really stores KV in: the reference holds bfloat16 values as float32."""
    block_size: int
    max_num_seqs: int
    max_chunk: int | None
    """Most tokens of one sequence in a step; None: whole prompts."""
    max_model_len: int | Auto
    kv_cache_memory_bytes: int | Auto
    num_blocks_override: int | None
    weights_bytes: int
    work_bytes: int
    available_bytes: int

    @property
    def room_bytes(self) -> int:
        """What is left beside weights and work."""
        return self.available_bytes - self.weights_bytes - self.work_bytes

    def cache_spec(self, groups: tuple[KvGroup, ...], *, num_blocks: int) -> KvCacheSpec:
        """The cache of so many blocks."""
        return KvCacheSpec(
            groups=groups,
            block_size=self.block_size,
            num_blocks=num_blocks,
            num_kv_heads=self.spec.num_kv_heads,
            head_dim=self.spec.head_dim,
            dtype=self.dtype,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What it comes to."""

    cache: KvCacheSpec
    kv_bytes: int
    max_model_len: int
    num_kv_tokens: int


def work_bytes(spec: ModelSpec, *, max_num_seqs: int, num_step_tokens: int) -> int:
    """Upper estimate of what a step needs beside weights and KV: float32 activations and two copies of the logits."""
    attention_width = (2 * spec.num_heads + 2 * spec.num_kv_heads) * spec.head_dim
    width = 3 * spec.hidden_size + max(attention_width, 3 * spec.intermediate_size)
    return _PROCESS_BYTES + 4 * num_step_tokens * width + 2 * 4 * max_num_seqs * spec.vocab_size


def rope_bytes(spec: ModelSpec, num_positions: int) -> int:
    """Rotary tables: float32 cosine and sine of half a head for each position, twice where layers differ."""
    num_tables = 1 if spec.rope_local is None else 2
    return 4 * spec.head_dim * num_tables * num_positions


def fit_memory(request: FitRequest) -> Fit:
    """Choose the pool and the longest sequence. Raises ConfigError with the number that would fit."""
    groups = deal_layers(request.spec.layer_kinds, request.spec.sliding_window)
    page = replace(request, dtype=request.storage_dtype).cache_spec(groups, num_blocks=1).page_bytes
    granted = _granted_blocks(request, page)
    max_model_len = _choose_length(request, groups, granted, page)
    num_blocks = granted
    peak = peak_blocks(groups, max_model_len, block_size=request.block_size, max_chunk=request.max_chunk)
    if request.num_blocks_override is None and request.kv_cache_memory_bytes == AUTO:
        num_blocks = min(granted, request.max_num_seqs * peak + 1)
    return Fit(
        cache=request.cache_spec(groups, num_blocks=num_blocks),
        kv_bytes=num_blocks * page,
        max_model_len=max_model_len,
        num_kv_tokens=(num_blocks - 1) * max_model_len // peak,
    )


def _granted_blocks(request: FitRequest, page_bytes: int) -> int:
    """Blocks that the options and the machine allow."""
    room_bytes = request.room_bytes
    if room_bytes < 2 * page_bytes:
        needed = request.weights_bytes + request.work_bytes + 2 * page_bytes
        remedy = (
            f"needs {format_bytes(needed)} (weights {format_bytes(request.weights_bytes)}, work"
            f" {format_bytes(request.work_bytes)}) but {format_bytes(request.available_bytes)} is available;"
            " free memory, choose a smaller model, or lower --max-num-seqs and --max-num-batched-tokens"
        )
        raise ConfigError([ConfigProblem("model", request.spec.model_type, remedy)])
    if request.num_blocks_override is not None:
        option, value = "num_gpu_blocks_override", request.num_blocks_override
        kv_bytes = request.num_blocks_override * page_bytes
    elif request.kv_cache_memory_bytes != AUTO:
        option, value = "kv_cache_memory_bytes", request.kv_cache_memory_bytes
        kv_bytes = value
    else:
        return min(room_bytes // 2 // page_bytes, _MAX_SLOTS // request.block_size)
    if kv_bytes > room_bytes:
        most = room_bytes // page_bytes if option == "num_gpu_blocks_override" else room_bytes
        remedy = (
            f"{format_bytes(kv_bytes)} of KV does not fit beside the weights in"
            f" {format_bytes(request.available_bytes)}; at most {most} does: --{option.replace('_', '-')} {most}"
        )
        raise ConfigError([ConfigProblem(option, value, remedy)])
    num_blocks = kv_bytes // page_bytes
    if num_blocks < 2:
        remedy = (
            f"holds no block: two take {2 * page_bytes} bytes; use --kv-cache-memory-bytes {2 * page_bytes} or more"
        )
        raise ConfigError([ConfigProblem(option, value, remedy)])
    return min(num_blocks, _MAX_SLOTS // request.block_size)


def _choose_length(request: FitRequest, groups: tuple[KvGroup, ...], granted: int, page_bytes: int) -> int:
    """The length asked for if it fits, or the largest that does."""

    def blocks_for(num_tokens: int) -> int:
        return peak_blocks(groups, num_tokens, block_size=request.block_size, max_chunk=request.max_chunk) + 1

    tabled = _longest_in_tables(request, len(groups))
    low, high = 0, min(request.spec.max_position, tabled)
    while low < high:
        middle = (low + high + 1) // 2
        if blocks_for(middle) <= granted:
            low = middle
        else:
            high = middle - 1
    longest = low
    asked = request.max_model_len
    if asked == AUTO:
        if longest == 0:
            needed = blocks_for(1) * page_bytes
            remedy = f"the KV memory holds no sequence at all; use --kv-cache-memory-bytes {needed} or more"
            raise ConfigError([ConfigProblem("max_model_len", AUTO, remedy)])
        return longest
    if asked > request.spec.max_position:
        remedy = (
            f"the model was made for {request.spec.max_position} tokens;"
            f" use --max-model-len {min(longest, request.spec.max_position) or request.spec.max_position}"
        )
        raise ConfigError([ConfigProblem("max_model_len", asked, remedy)])
    if asked > tabled:
        remedy = (
            f"its rotary tables and rows of ids take more than half of the {format_bytes(request.room_bytes)} beside"
            f" the weights; use --max-model-len {tabled} or lower --max-num-seqs"
        )
        raise ConfigError([ConfigProblem("max_model_len", asked, remedy)])
    if asked > longest:
        needed = blocks_for(asked) * page_bytes
        remedy = (
            f"needs {format_bytes(needed)} of KV memory, {format_bytes(granted * page_bytes)} is granted; fits:"
            f" {longest}; use --max-model-len {longest} or --kv-cache-memory-bytes {needed}"
        )
        raise ConfigError([ConfigProblem("max_model_len", asked, remedy)])
    return asked


def _longest_in_tables(request: FitRequest, num_groups: int) -> int:
    """The length whose tables take half of the room: rotary angles, and ids of tokens and blocks for each sequence."""
    ids_bytes = 4 * request.max_num_seqs * (1 + ceil_div(num_groups, request.block_size))
    return request.room_bytes // 2 // (rope_bytes(request.spec, 1) + ids_bytes)
