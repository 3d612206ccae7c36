"""The configuration the engine runs with: every `auto` replaced, every size a number.

Made by `resolve.resolve`, read by `engine/build.py`, which hands each part its own group. Nothing here changes later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from octavo.base.units import format_bytes
from octavo.config.model_options import Dtype
from octavo.config.model_spec import ModelSpec
from octavo.config.schema import CpuIsa, EngineConfig, KernelBackend, SchedulingPolicy
from octavo.proto.kv import KvCacheSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What must be known of a checkpoint before memory can be dealt out."""

    spec: ModelSpec
    weight_bytes: Mapping[Dtype, int]
    """Bytes of the weights in memory, by the dtype they are stored in there."""
    file_format: Literal["safetensors", "gguf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    """Who gets how much of the machine's memory, in bytes."""

    weights_bytes: int
    kv_bytes: int
    work_bytes: int
    """Activations, logits and the process itself: an upper estimate."""
    available_bytes: int
    """What was free before anything was loaded."""
    num_blocks: int
    block_size: int
    num_kv_tokens: int
    """Tokens of full-length sequences that the pool holds."""

    def __str__(self) -> str:
        total_bytes = self.weights_bytes + self.kv_bytes + self.work_bytes
        return (
            f"weights {format_bytes(self.weights_bytes)} | KV {format_bytes(self.kv_bytes)} ="
            f" {self.num_blocks:,} blocks of {self.block_size} = {self.num_kv_tokens:,} tokens"
            f" | work {format_bytes(self.work_bytes)}"
            f" | total {format_bytes(total_bytes)} of {format_bytes(self.available_bytes)} available"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """What the model is run with."""

    dtype: Dtype
    max_model_len: int
    served_model_names: tuple[str, ...]
    """At least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedCache:
    """The KV pool."""

    spec: KvCacheSpec
    """Groups, block size, number of blocks (null block included), dtype."""
    kv_cache_memory_bytes: int
    enable_prefix_caching: bool
    prefix_hash_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedScheduler:
    """Limits of the scheduler; `max_model_len` is in ResolvedModel."""

    max_num_seqs: int
    max_num_batched_tokens: int
    enable_chunked_prefill: bool
    long_prefill_token_threshold: int
    """0: no limit."""
    scheduling_policy: SchedulingPolicy
    async_scheduling: bool
    max_concurrent_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedKernels:
    """What computes."""

    kernel_backend: KernelBackend
    cpu_isa: CpuIsa
    num_threads: int
    enforce_eager: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    """All of it."""

    options: EngineConfig
    """The user's options with every `auto` replaced: what `--print-config` writes. Read options that were never
    derived (seed, chat_template, log_level ...) from here."""
    model: ResolvedModel
    cache: ResolvedCache
    scheduler: ResolvedScheduler
    kernels: ResolvedKernels
    disable_log_stats: bool
    budget: MemoryBudget
