"""Every option of the engine, typed, in groups. Flags, help, docs and checks are generated from here.

Owns: names, types, defaults, ranges and one-line docs.
Does not own: reading values (load.py), rules between options (validate.py), replacing `auto` (resolve.py).
To add a group: write its dataclass, give it a field in EngineConfig and a title in GROUP_TITLES.
`None` means "not given" and stays; "auto" means "derived" and is replaced by resolve.py.
Names, defaults and units are vLLM's; `differs` says where not and why.
"""

# ruff: noqa: RUF009 - option() returns a dataclass field, not a value shared by instances

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from octavo.config.answer_options import AnswerConfig
from octavo.config.model_options import ModelConfig
from octavo.config.option import AUTO, Auto, Option, option, options_of
from octavo.config.server_options import ServerConfig

SchedulingPolicy = Literal["fcfs", "priority"]
KernelBackend = Literal["reference", "cpu"]
CpuIsa = Literal["scalar", "avx2", "avx512", "avx512_bf16", "amx"]
ISA_LEVELS: tuple[CpuIsa, ...] = ("scalar", "avx2", "avx512", "avx512_bf16", "amx")
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Usage = Literal["offline", "server"]

_ONE_WORKER = "Only 1: this release has one worker."


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """KV memory and the prefix cache."""

    block_size: int = option(
        32,
        "Tokens per KV block.",
        kind="count",
        unit="tokens",
        minimum=16,
        maximum=1024,
        multiple_of=16,
        differs="32 (vLLM: 128 on CPU): one matrix tile of attention spans 32 tokens, and smaller blocks share more.",
    )
    kv_cache_memory_bytes: int | Auto = option(
        AUTO,
        "Memory for the KV cache: 4G, 512M or bytes.",
        kind="size",
        unit="bytes",
        minimum=1,
        auto="half of the memory left beside the weights, or what max_num_seqs full-length sequences need if less",
        common=True,
        differs="Fitted to the memory really available (control groups included); vLLM takes a fraction of the node's.",
    )
    gpu_memory_utilization: float | None = option(
        None,
        "Share of a GPU's memory to use. GPU only.",
        kind="fraction",
        minimum=0.01,
        maximum=1.0,
        differs="Refused on CPU, where vLLM reads it as a share of the node's RAM; --kv-cache-memory-bytes says "
        "how much exactly.",
    )
    enable_prefix_caching: bool = option(True, "Reuse the KV of prompts that begin alike.", kind="switch", common=True)
    prefix_hash_key: str = option(
        "octavo",
        "Key of the prefix cache's hashes; engines that share KV need the same one.",
        kind="text",
        differs="Ours: a fixed key lets restarts, tiers and routers agree; vLLM has --prefix-caching-hash-algo.",
    )
    num_gpu_blocks_override: int | None = option(
        None, "Exact number of KV blocks, whatever the memory; for tests.", kind="count", unit="blocks", minimum=2
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """How much runs at once, and in which order."""

    max_num_seqs: int | Auto = option(
        AUTO,
        "Most sequences that run at once.",
        kind="count",
        unit="sequences",
        minimum=1,
        maximum=65536,
        auto="256 offline, 128 in a server; no more than max_num_batched_tokens",
        common=True,
    )
    max_num_batched_tokens: int | Auto = option(
        AUTO,
        "Most tokens computed in one step.",
        kind="count",
        unit="tokens",
        minimum=1,
        maximum=2**20,
        auto="4096 offline, 2048 in a server; at least max_num_seqs, and max_model_len when prompts are not cut into "
        "chunks",
        common=True,
    )
    enable_chunked_prefill: bool = option(True, "Cut long prompts into chunks that share steps.", kind="switch")
    long_prefill_token_threshold: int = option(
        0, "Most tokens of one prompt in a step; 0: no limit.", kind="count", unit="tokens", minimum=0
    )
    scheduling_policy: SchedulingPolicy = option(
        "fcfs", "Order of waiting requests.", kind="choice", choices=("fcfs", "priority"), common=True
    )
    async_scheduling: bool | Auto = option(
        AUTO,
        "Plan the next step while one runs.",
        kind="switch",
        auto="on when max_concurrent_steps is above 1, else off: on CPU planning takes the cores that compute",
        differs="auto is off on CPU: planning ahead competes with the kernels for the same cores.",
    )
    max_concurrent_steps: int | Auto = option(
        AUTO,
        "Most steps in flight.",
        kind="count",
        unit="steps",
        minimum=1,
        maximum=3,
        auto="2 with asynchronous scheduling, else 1",
        differs="Ours, so that the depth can be tested and measured; vLLM derives it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelConfig:
    """What computes, and on how many threads."""

    kernel_backend: KernelBackend | Auto = option(
        AUTO,
        "Kernels: cpu (native) or reference (numpy: slow, obvious, the oracle of the tests).",
        kind="choice",
        choices=("reference", "cpu"),
        auto="cpu where its kernels are built, else reference",
        differs="Ours: the reference back end is the yardstick of the native kernels.",
    )
    cpu_isa: CpuIsa | Auto = option(
        AUTO,
        "Instruction set of the native kernels; results are reproducible within one. amx: the matrix unit "
        "of Xeons since 2023 (AMX-BF16, Linux 5.16), for products in bfloat16.",
        kind="choice",
        choices=ISA_LEVELS,
        auto="the best that the processor has",
        differs="Ours: one build serves all processors; vLLM chooses when it is compiled.",
    )
    num_threads: int | Auto = option(
        AUTO,
        "Threads that compute.",
        kind="count",
        minimum=1,
        maximum=1024,
        auto="the cores this process may use (affinity and control group quota)",
        common=True,
        differs="Ours: an option like the others; vLLM reads VLLM_CPU_OMP_THREADS_BIND.",
    )
    enforce_eager: bool = option(
        False, "Never record steps for replay. Accepted; this release records none.", kind="switch"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelConfig:
    """More than one worker. This release has one; other sizes are refused."""

    tensor_parallel_size: int = option(
        1, "Workers that share each layer.", kind="count", minimum=1, short_flag="-tp", differs=_ONE_WORKER
    )
    pipeline_parallel_size: int = option(
        1,
        "Workers that share the stack of layers.",
        kind="count",
        minimum=1,
        short_flag="-pp",
        differs=_ONE_WORKER,
    )
    data_parallel_size: int = option(
        1, "Engines that share the requests.", kind="count", minimum=1, short_flag="-dp", differs=_ONE_WORKER
    )
    distributed_executor_backend: Literal["uni"] | Auto = option(
        AUTO,
        "What runs the workers. uni: this process.",
        kind="choice",
        choices=("uni",),
        auto="uni",
        refused={
            "mp": "one worker runs in this process; leave the option out or use uni",
            "ray": "one worker runs in this process; leave the option out or use uni",
            "external_launcher": "one worker runs in this process; leave the option out or use uni",
        },
        differs="Only uni: one worker runs in the engine's process.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilityConfig:
    """What the engine says about itself."""

    disable_log_stats: bool | Auto = option(
        AUTO, "Do not log statistics.", kind="switch", auto="on offline, off in a server"
    )
    otlp_traces_endpoint: str | None = option(
        None,
        "Send a span per request to this OpenTelemetry address (OTLP over gRPC; over HTTP where it ends with "
        "/v1/traces). Needs the extra `otel`.",
        kind="text",
    )
    log_format: LogFormat = option(
        "text",
        "Form of log lines.",
        kind="choice",
        choices=("text", "json"),
        differs="One flag in place of --logging-config.formatter: it is all that users change.",
    )
    log_level: LogLevel = option(
        "info",
        "Least important lines that are logged.",
        kind="choice",
        choices=("debug", "info", "warning", "error"),
        differs="One flag in place of VLLM_LOGGING_LEVEL: nothing is set by environment alone.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """All options as the user gave them, checked one by one and together; `auto` is still in it."""

    usage: Usage = "offline"
    """Not an option: who asks. Some defaults depend on it."""
    model: ModelConfig = field(default_factory=ModelConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    kernels: KernelConfig = field(default_factory=KernelConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    observability: ObservabilityConfig = field(default_factory=ObservabilityConfig)
    server: ServerConfig = field(default_factory=ServerConfig)
    answers: AnswerConfig = field(default_factory=AnswerConfig)


GROUP_TITLES: Mapping[str, str] = {
    "model": "Model and tokenizer",
    "cache": "KV memory and prefix cache",
    "scheduler": "Scheduler",
    "kernels": "Kernels and threads",
    "parallel": "Parallelism",
    "observability": "Logs and statistics",
    "server": "HTTP server",
    "answers": "Tools and reasoning in answers",
}
"""Field of EngineConfig -> heading."""
SERVER_GROUPS = frozenset({"server", "answers"})
"""Those without meaning offline."""


def group_types() -> dict[str, type]:
    """Field of EngineConfig -> the dataclass of that group, in order."""
    defaults = EngineConfig()
    return {
        item.name: type(getattr(defaults, item.name))
        for item in dataclasses.fields(EngineConfig)
        if item.name in GROUP_TITLES
    }


@functools.cache
def all_options() -> Mapping[str, Option]:
    """Name -> option, over all groups, in the order of the schema."""
    return {opt.name: opt for group, group_type in group_types().items() for opt in options_of(group, group_type)}
