"""Rules between options, and options that are known but refused here. One function a rule; each yields its problems.

Owns: what can be said without knowing the model or the machine.   Does not own: ranges of single options (values.py),
what depends on the model or machine (resolve.py, memory_fit.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from octavo.base.errors import ConfigProblem
from octavo.config.answer_options import (
    FOREIGN_BACKENDS,
    OWN_BACKENDS,
    STRUCTURED_OUTPUTS_BACKENDS,
    STRUCTURED_OUTPUTS_SWITCHES,
)
from octavo.config.option import AUTO
from octavo.config.schema import EngineConfig

Rule = Callable[[EngineConfig], Iterator[ConfigProblem]]


def find_problems(config: EngineConfig) -> list[ConfigProblem]:
    """Everything that the rules find."""
    return [problem for rule in RULES for problem in rule(config)]


def one_worker(config: EngineConfig) -> Iterator[ConfigProblem]:
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        size = getattr(config.parallel, name)
        if size != 1:
            yield ConfigProblem(name, size, "this release runs one worker; leave the option out or set it to 1")


def gpu_memory_needs_gpu(config: EngineConfig) -> Iterator[ConfigProblem]:
    share = config.cache.gpu_memory_utilization
    if share is not None:
        yield ConfigProblem(
            "gpu_memory_utilization",
            share,
            "is for GPUs; on CPU say how much KV memory to take, as in --kv-cache-memory-bytes 4G, or leave it out",
        )


def steps_match_async(config: EngineConfig) -> Iterator[ConfigProblem]:
    steps, is_async = config.scheduler.max_concurrent_steps, config.scheduler.async_scheduling
    if steps == AUTO:
        return
    if is_async is True and steps == 1:
        remedy = "asynchronous scheduling needs --max-concurrent-steps 2 or 3; or leave one of the two out"
        yield ConfigProblem("max_concurrent_steps", steps, remedy)
    if is_async is False and steps > 1:
        remedy = "more than one step in flight needs --async-scheduling; or leave one of the two out"
        yield ConfigProblem("max_concurrent_steps", steps, remedy)


def chunks_fit_steps(config: EngineConfig) -> Iterator[ConfigProblem]:
    threshold = config.scheduler.long_prefill_token_threshold
    if threshold and not config.scheduler.enable_chunked_prefill:
        remedy = "cuts prompts, which --no-enable-chunked-prefill forbids; leave one of the two out"
        yield ConfigProblem("long_prefill_token_threshold", threshold, remedy)


def sequences_fit_steps(config: EngineConfig) -> Iterator[ConfigProblem]:
    tokens, max_num_seqs = config.scheduler.max_num_batched_tokens, config.scheduler.max_num_seqs
    if isinstance(tokens, int) and isinstance(max_num_seqs, int) and tokens < max_num_seqs:
        remedy = (
            f"gives {max_num_seqs} sequences less than a token each in a step;"
            f" use --max-num-batched-tokens {max_num_seqs} or --max-num-seqs {tokens}"
        )
        yield ConfigProblem("max_num_batched_tokens", tokens, remedy)


def one_size_of_pool(config: EngineConfig) -> Iterator[ConfigProblem]:
    blocks, size = config.cache.num_gpu_blocks_override, config.cache.kv_cache_memory_bytes
    if blocks is not None and size != AUTO:
        remedy = "the pool's size is given twice; leave out this or --kv-cache-memory-bytes"
        yield ConfigProblem("num_gpu_blocks_override", blocks, remedy)


def key_with_certificate(config: EngineConfig) -> Iterator[ConfigProblem]:
    key, certificate = config.server.ssl_keyfile, config.server.ssl_certfile
    if (key is None) != (certificate is None):
        name, value = ("ssl_keyfile", key) if certificate is None else ("ssl_certfile", certificate)
        yield ConfigProblem(name, value, "HTTPS needs both --ssl-keyfile and --ssl-certfile")


def admin_port_needs_key(config: EngineConfig) -> Iterator[ConfigProblem]:
    server = config.server
    if server.admin_port is not None and server.admin_api_key is None:
        remedy = "any user of the machine can connect to a port: give --admin-api-key too, or use --admin-uds"
        yield ConfigProblem("admin_port", server.admin_port, remedy)


def sockets_for_one_place(config: EngineConfig) -> Iterator[ConfigProblem]:
    server = config.server
    if server.uds is not None and server.ssl_certfile is not None:
        yield ConfigProblem("uds", server.uds, "a unix socket has no HTTPS; leave out --ssl-certfile and --ssl-keyfile")


def several_front_ends_need_processes(config: EngineConfig) -> Iterator[ConfigProblem]:
    server = config.server
    if server.in_process and server.api_server_count > 1:
        yield ConfigProblem(
            "api_server_count",
            server.api_server_count,
            "needs the engine in a process of its own; leave out --in-process",
        )


def constraints_have_known_defaults(config: EngineConfig) -> Iterator[ConfigProblem]:
    for name, value in config.answers.structured_outputs_config.items():
        label = f"structured_outputs_config.{name}"
        if name == "backend":
            if value not in STRUCTURED_OUTPUTS_BACKENDS:
                remedy = f"is not known; use {' or '.join(OWN_BACKENDS)}, or leave it out"
                yield ConfigProblem(label, value, f"{remedy} ({', '.join(FOREIGN_BACKENDS)} are taken for guidance)")
        elif name not in STRUCTURED_OUTPUTS_SWITCHES:
            yield ConfigProblem(
                label, value, f"is not known; known are backend, {', '.join(STRUCTURED_OUTPUTS_SWITCHES)}"
            )
        elif not isinstance(value, bool):
            yield ConfigProblem(label, value, "must be true or false")


RULES: tuple[Rule, ...] = (
    one_worker,
    gpu_memory_needs_gpu,
    steps_match_async,
    chunks_fit_steps,
    sequences_fit_steps,
    one_size_of_pool,
    key_with_certificate,
    admin_port_needs_key,
    sockets_for_one_place,
    several_front_ends_need_processes,
    constraints_have_known_defaults,
)
