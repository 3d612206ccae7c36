"""Replace every `auto`, once, from facts that are passed in as values.

Owns: what each `auto` becomes.   Does not own: the facts (machine.py, loading/), the memory arithmetic (memory_fit.py).
Resolving what was resolved changes nothing: `--print-config` replays.
"""

from __future__ import annotations

from dataclasses import replace

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.base.units import align_up
from octavo.config.machine import MachineFacts
from octavo.config.memory_fit import Fit, FitRequest, fit_memory, rope_bytes, work_bytes
from octavo.config.model_options import Dtype
from octavo.config.model_spec import ModelSpec
from octavo.config.option import AUTO
from octavo.config.resolved import (
    MemoryBudget,
    ModelFacts,
    ResolvedCache,
    ResolvedConfig,
    ResolvedKernels,
    ResolvedModel,
    ResolvedScheduler,
)
from octavo.config.schema import CpuIsa, EngineConfig, KernelBackend, KernelConfig, SchedulerConfig, Usage

MAX_NUM_SEQS: dict[Usage, int] = {"offline": 256, "server": 128}
MAX_NUM_BATCHED_TOKENS: dict[Usage, int] = {"offline": 4096, "server": 2048}
BLOCK_SIZE_STEP: dict[KernelBackend, int] = {"reference": 16, "cpu": 32}
"""Block sizes are multiples of this: a matrix tile of the native attention spans 32 tokens."""


def resolve(config: EngineConfig, model: ModelFacts, machine: MachineFacts) -> ResolvedConfig:
    """The configuration to run with.

    Raises ConfigError for what this machine or model cannot do, with the value that it can.
    """
    _check_load_format(config, model)
    kernels = resolve_kernels(config.kernels, machine)
    _check_block_size(config.cache.block_size, kernels.kernel_backend)
    dtype = resolve_dtype(config, kernels, model.spec)
    steps, is_async = _resolve_depth(config.scheduler)
    max_num_seqs, step_tokens = _resolve_step_limits(config)
    most_tokens = _most_step_tokens(config, step_tokens, model.spec)
    work = work_bytes(model.spec, max_num_seqs=max_num_seqs, num_step_tokens=most_tokens)
    storage_dtype: Dtype = "float32" if kernels.kernel_backend == "reference" else dtype
    weights = model.weight_bytes[storage_dtype]
    fit = fit_memory(
        FitRequest(
            spec=model.spec,
            dtype=dtype,
            storage_dtype=storage_dtype,
            block_size=config.cache.block_size,
            max_num_seqs=max_num_seqs,
            max_chunk=step_tokens if config.scheduler.enable_chunked_prefill else None,
            max_model_len=config.model.max_model_len,
            kv_cache_memory_bytes=config.cache.kv_cache_memory_bytes,
            num_blocks_override=config.cache.num_gpu_blocks_override,
            weights_bytes=weights,
            work_bytes=work,
            available_bytes=machine.memory_available_bytes,
        )
    )
    scheduler = ResolvedScheduler(
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=_final_step_tokens(config.scheduler, step_tokens, fit.max_model_len),
        enable_chunked_prefill=config.scheduler.enable_chunked_prefill,
        long_prefill_token_threshold=config.scheduler.long_prefill_token_threshold,
        scheduling_policy=config.scheduler.scheduling_policy,
        async_scheduling=is_async,
        max_concurrent_steps=steps,
    )
    work = work_bytes(model.spec, max_num_seqs=max_num_seqs, num_step_tokens=scheduler.max_num_batched_tokens)
    budget = MemoryBudget(
        weights_bytes=weights,
        kv_bytes=fit.kv_bytes,
        work_bytes=work + rope_bytes(model.spec, fit.max_model_len),
        available_bytes=machine.memory_available_bytes,
        num_blocks=fit.cache.num_blocks,
        block_size=fit.cache.block_size,
        num_kv_tokens=fit.num_kv_tokens,
    )
    return _assemble(config, dtype, kernels, scheduler, fit, budget)


def resolve_kernels(config: KernelConfig, machine: MachineFacts) -> ResolvedKernels:
    """Back end, instruction set and threads. Raises ConfigError for what is not there."""
    problems: list[ConfigProblem] = []
    backend = config.kernel_backend
    if backend == AUTO:
        backend = "cpu" if "cpu" in machine.kernel_backends else "reference"
    elif backend not in machine.kernel_backends:
        remedy = f"not built here; use --kernel-backend {' or '.join(machine.kernel_backends)}"
        problems.append(ConfigProblem("kernel_backend", backend, remedy))
    isa = config.cpu_isa
    if isa == AUTO:
        isa = machine.isa_levels[-1]
    elif isa not in machine.isa_levels:
        remedy = f"{_lack_of(isa)}; use --cpu-isa {' or '.join(machine.isa_levels)}"
        problems.append(ConfigProblem("cpu_isa", isa, remedy))
    if problems:
        raise ConfigError(problems)
    threads = machine.num_cores if config.num_threads == AUTO else config.num_threads
    return ResolvedKernels(kernel_backend=backend, cpu_isa=isa, num_threads=threads, enforce_eager=config.enforce_eager)


def _lack_of(isa: CpuIsa) -> str:
    if isa == "amx":
        return "needs AMX-BF16 and AVX512-BF16, and a system that grants tile state to this process (Linux 5.16)"
    return "this processor does not have it"


def _check_block_size(block_size: int, backend: KernelBackend) -> None:
    step = BLOCK_SIZE_STEP[backend]
    if block_size % step:
        rounded = align_up(block_size, step)
        remedy = f"the {backend} back end takes multiples of {step}; use --block-size {rounded}"
        raise ConfigError([ConfigProblem("block_size", block_size, remedy)])


def _check_load_format(config: EngineConfig, model: ModelFacts) -> None:
    asked = config.model.load_format
    if asked not in (AUTO, model.file_format):
        remedy = f"the weights of {config.model.model} are in {model.file_format}; leave the option out"
        raise ConfigError([ConfigProblem("load_format", asked, remedy)])


def resolve_dtype(config: EngineConfig, kernels: ResolvedKernels, spec: ModelSpec) -> Dtype:
    """float32 where exactness is the point (reference, float32 checkpoints), else bfloat16."""
    if config.model.dtype != AUTO:
        return config.model.dtype
    if kernels.kernel_backend == "reference" or spec.checkpoint_dtype == "float32":
        return "float32"
    return "bfloat16"


def _resolve_depth(config: SchedulerConfig) -> tuple[int, bool]:
    """(steps in flight, asynchronous)."""
    if config.max_concurrent_steps != AUTO:
        return config.max_concurrent_steps, config.max_concurrent_steps > 1
    is_async = config.async_scheduling is True
    return (2 if is_async else 1), is_async


def _resolve_step_limits(config: EngineConfig) -> tuple[int, int]:
    """(sequences, tokens) of a step. Each sequence needs a token, so what was given limits what is derived."""
    tokens = config.scheduler.max_num_batched_tokens
    seqs = config.scheduler.max_num_seqs
    if seqs == AUTO:
        tokens = MAX_NUM_BATCHED_TOKENS[config.usage] if tokens == AUTO else tokens
        return min(MAX_NUM_SEQS[config.usage], tokens), tokens
    return seqs, max(MAX_NUM_BATCHED_TOKENS[config.usage], seqs) if tokens == AUTO else tokens


def _most_step_tokens(config: EngineConfig, step_tokens: int, spec: ModelSpec) -> int:
    """Upper bound of a step's tokens before the length is known: whole prompts may be as long as the model allows."""
    if config.scheduler.enable_chunked_prefill:
        return step_tokens
    length = config.model.max_model_len
    return max(step_tokens, spec.max_position if length == AUTO else length)


def _final_step_tokens(config: SchedulerConfig, step_tokens: int, max_model_len: int) -> int:
    """Whole prompts must fit into a step when they are not cut."""
    if config.enable_chunked_prefill or step_tokens >= max_model_len:
        return step_tokens
    if config.max_num_batched_tokens == AUTO:
        return max_model_len
    remedy = (
        f"without chunked prefill a prompt of max_model_len {max_model_len} must fit into one step;"
        f" use --max-num-batched-tokens {max_model_len}, --max-model-len {step_tokens} or --enable-chunked-prefill"
    )
    raise ConfigError([ConfigProblem("max_num_batched_tokens", step_tokens, remedy)])


def _assemble(
    config: EngineConfig,
    dtype: Dtype,
    kernels: ResolvedKernels,
    scheduler: ResolvedScheduler,
    fit: Fit,
    budget: MemoryBudget,
) -> ResolvedConfig:
    names = config.model.served_model_name or (config.model.model,)
    disable_log_stats = config.observability.disable_log_stats
    if disable_log_stats == AUTO:
        disable_log_stats = config.usage == "offline"
    options = replace(
        config,
        model=replace(config.model, dtype=dtype, max_model_len=fit.max_model_len, served_model_name=names),
        cache=replace(config.cache, kv_cache_memory_bytes=fit.kv_bytes, num_gpu_blocks_override=None),
        scheduler=replace(
            config.scheduler,
            max_num_seqs=scheduler.max_num_seqs,
            max_num_batched_tokens=scheduler.max_num_batched_tokens,
            async_scheduling=scheduler.async_scheduling,
            max_concurrent_steps=scheduler.max_concurrent_steps,
        ),
        kernels=replace(
            config.kernels,
            kernel_backend=kernels.kernel_backend,
            cpu_isa=kernels.cpu_isa,
            num_threads=kernels.num_threads,
        ),
        parallel=replace(config.parallel, distributed_executor_backend="uni"),
        observability=replace(config.observability, disable_log_stats=disable_log_stats),
    )
    return ResolvedConfig(
        options=options,
        model=ResolvedModel(dtype=dtype, max_model_len=fit.max_model_len, served_model_names=names),
        cache=ResolvedCache(
            spec=fit.cache,
            kv_cache_memory_bytes=fit.kv_bytes,
            enable_prefix_caching=config.cache.enable_prefix_caching,
            prefix_hash_key=config.cache.prefix_hash_key.encode(),
        ),
        scheduler=scheduler,
        kernels=kernels,
        disable_log_stats=disable_log_stats,
        budget=budget,
    )
