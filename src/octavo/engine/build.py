"""The composition root: from a configuration to a running engine.

Owns: the order of start-up, and which concrete class plays which part; nothing else names them.
Does not own: any of the parts.
Each part gets the values it needs, never the configuration. Runner, models and kernels are imported late: a front end
that talks to an engine elsewhere does not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from octavo.base.clock import Clock, MonotonicClock
from octavo.base.errors import InvariantError, LoadError
from octavo.base.log import get_logger
from octavo.config.machine import MachineFacts, read_machine
from octavo.config.resolve import resolve
from octavo.config.resolved import ModelFacts, ResolvedConfig
from octavo.config.schema import EngineConfig, KernelBackend
from octavo.core.budget import SchedulerLimits
from octavo.core.kv.manager import KvManager
from octavo.core.policy import make_policy
from octavo.core.scheduler import Scheduler
from octavo.engine.client import InProcessClient
from octavo.engine.core import EngineCore
from octavo.engine.frontend import FrontEnd
from octavo.engine.grammars import GrammarDesk, LazyBackend
from octavo.engine.input.front_parts import (
    load_front_parts,
    make_grammar_backend,
    make_inputs,
    open_model,
    read_vocabulary,
)
from octavo.engine.input.processor import InputProcessor
from octavo.engine.output.processor import OutputProcessor
from octavo.engine.startup_log import startup_lines, startup_warnings
from octavo.engine.timeline import Timeline
from octavo.executor.interface import Executor
from octavo.grammar.cache import GrammarCache
from octavo.grammar.compiler import GrammarCompiler
from octavo.loading import Checkpoint, Tokenizer
from octavo.obs.step_meter import MachineRates, StepMeter
from octavo.proto.plan import StepPlan

logger = get_logger(__name__)

GRAMMAR_CACHE_BYTES = 64 << 20
"""Compiled grammars that are kept when no request uses them."""
MAX_HELD_PER_SEQUENCE = 2
"""Waiting requests whose grammars are made ahead, for each sequence that may run."""

Progress = Callable[[int, int], None]
"""Called with (parts of the weights loaded, parts in all)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A running engine in this process, and what a front end needs to use it."""

    config: ResolvedConfig
    tokenizer: Tokenizer | None
    inputs: InputProcessor
    front_end: FrontEnd
    timeline: Timeline


def build_engine(config: EngineConfig, *, progress: Progress | None = None) -> Engine:
    """Load the model and start everything. Raises ConfigError, LoadError and what they derive from.

    Cost: reads the weights once; the phases are in `timeline`.
    """
    clock = MonotonicClock()
    timeline = Timeline(clock)
    machine = read_machine(kernel_backends=_kernel_backends())
    timeline.mark("machine")
    with open_model(config) as checkpoint:
        resolved = _resolve(config, checkpoint, machine, timeline)
        parts = load_front_parts(config, checkpoint)
        backend = make_grammar_backend(lambda: parts)
        inputs = make_inputs(parts, resolved, grammars=backend)
        timeline.mark("tokenizer")
        grammars = _make_desk(backend, resolved, clock)
        executor, meter = _load_executor(checkpoint, resolved, grammars, timeline, progress)
        identity = model_identity(checkpoint, resolved)
    core = _make_core(resolved, executor, clock, grammars, meter=meter, identity=identity)
    client = InProcessClient(core)
    front_end = FrontEnd(client, OutputProcessor(parts.tokenizer), clock)
    timeline.mark("front end")
    logger.info("ready in %s", timeline)
    return Engine(config=resolved, tokenizer=parts.tokenizer, inputs=inputs, front_end=front_end, timeline=timeline)


def build_core(
    config: EngineConfig, timeline: Timeline, *, on_step_done: Callable[[], None]
) -> tuple[ResolvedConfig, EngineCore]:
    """The engine's half alone, for a front end elsewhere: no tokenizer, no defaults. Raises as build_engine does.

    on_step_done: see EngineCore.
    """
    clock = MonotonicClock()
    machine = read_machine(kernel_backends=_kernel_backends())
    timeline.mark("machine")
    with open_model(config) as checkpoint:
        resolved = _resolve(config, checkpoint, machine, timeline)
        backend = make_grammar_backend(lambda: read_vocabulary(config))
        grammars = _make_desk(backend, resolved, clock, on_ready=on_step_done)
        executor, meter = _load_executor(checkpoint, resolved, grammars, timeline, None)
        identity = model_identity(checkpoint, resolved)
    core = _make_core(resolved, executor, clock, grammars, meter=meter, identity=identity, on_step_done=on_step_done)
    return resolved, core


def _make_desk(
    backend: LazyBackend, resolved: ResolvedConfig, clock: Clock, *, on_ready: Callable[[], None] | None = None
) -> GrammarDesk:
    return GrammarDesk(
        backend,
        GrammarCompiler(backend, cache=GrammarCache(GRAMMAR_CACHE_BYTES)),
        clock,
        max_held=MAX_HELD_PER_SEQUENCE * resolved.scheduler.max_num_seqs,
        on_ready=on_ready,
    )


def _resolve(config: EngineConfig, checkpoint: Checkpoint, machine: MachineFacts, timeline: Timeline) -> ResolvedConfig:
    facts = _model_facts(checkpoint)
    timeline.mark("checkpoint")
    resolved = resolve(config, facts, machine)
    logger.info("memory: %s", resolved.budget)
    return resolved


def resolve_options(config: EngineConfig) -> ResolvedConfig:
    """What build_engine would run with, found without loading weights: for `--print-config`. Raises the same."""
    machine = read_machine(kernel_backends=_kernel_backends())
    with open_model(config) as checkpoint:
        return resolve(config, _model_facts(checkpoint), machine)


def _model_facts(checkpoint: Checkpoint) -> ModelFacts:
    return ModelFacts(
        spec=checkpoint.spec,
        weight_bytes={dtype: checkpoint.num_weight_bytes(dtype) for dtype in ("float32", "bfloat16")},
        file_format="gguf" if checkpoint.path.is_file() else "safetensors",
    )


def _kernel_backends() -> tuple[KernelBackend, ...]:
    from octavo.kernels.dispatch import available_backends

    return available_backends()


def _load_executor(
    checkpoint: Checkpoint,
    resolved: ResolvedConfig,
    grammars: GrammarDesk,
    timeline: Timeline,
    progress: Progress | None,
) -> tuple[Executor, StepMeter]:
    """Kernels, weights, KV memory, one warm-up of each path; where statistics are wanted, the machine's rates."""
    from octavo.executor.inproc import InProcessExecutor
    from octavo.kernels.dispatch import make_ops
    from octavo.kernels.rates import measure_rates
    from octavo.models.cost import CostModel
    from octavo.models.load import load_model
    from octavo.runner.runner import ModelRunner
    from octavo.runner.warmup import make_warmup_plans

    kernels, scheduler = resolved.kernels, resolved.scheduler
    ops = make_ops(kernels.kernel_backend, resolved.model.dtype, num_threads=kernels.num_threads, isa=kernels.cpu_isa)
    timeline.mark("kernels")
    model = load_model(checkpoint, ops, resolved.model.max_model_len, progress)
    timeline.mark("weights")
    limits = {
        "max_num_seqs": scheduler.max_num_seqs,
        "max_model_len": resolved.model.max_model_len,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
    }
    itemsize = 4 if resolved.model.dtype == "float32" else 2
    cost_model = CostModel(checkpoint.spec, weight_bits=8 * itemsize, kv_itemsize=itemsize)
    runner = ModelRunner(model, ops, resolved.cache.spec, cost_model=cost_model, grammars=grammars, **limits)
    executor = InProcessExecutor(runner, scheduler.max_concurrent_steps)
    timeline.mark("KV memory")
    rates = None
    try:
        _warm_up(executor, make_warmup_plans(resolved.cache.spec, **limits), resolved.options.model.model)
        timeline.mark("warm-up")
        if not resolved.disable_log_stats:
            measured = measure_rates(ops, num_threads=kernels.num_threads)
            rates = MachineRates(bytes_per_s=measured.bytes_per_s, flops_per_s=measured.flops_per_s)
            timeline.mark("rates")
    except BaseException:
        executor.shutdown()
        raise
    for line in startup_warnings(resolved):
        logger.warning(line)
    for line in startup_lines(resolved, timeline.phases):
        logger.info(line)
    return executor, StepMeter(rates)


def _warm_up(executor: Executor, plans: Sequence[StepPlan], model: str) -> None:
    """Run the plans. Raises LoadError for a model whose outputs are not finite: it would end every request."""
    for plan in plans:
        for failure in executor.submit(plan).result().failed.values():
            if failure.kind != "numeric":
                raise InvariantError(f"warm-up step {plan.step_id}: {failure.text}")
            raise LoadError(f"model {model!r}: {failure.text}: its weights are damaged; fetch the model again")


def _make_core(
    resolved: ResolvedConfig,
    executor: Executor,
    clock: Clock,
    grammars: GrammarDesk,
    *,
    meter: StepMeter,
    identity: str,
    on_step_done: Callable[[], None] | None = None,
) -> EngineCore:
    cache, limits = resolved.cache, resolved.scheduler
    kv = KvManager(
        cache.spec.groups,
        num_blocks=cache.spec.num_blocks,
        block_size=cache.spec.block_size,
        hash_key=cache.prefix_hash_key,
        enable_prefix_caching=cache.enable_prefix_caching,
        model_identity=identity,
    )
    scheduler = Scheduler(
        SchedulerLimits(
            max_num_seqs=limits.max_num_seqs,
            max_num_batched_tokens=limits.max_num_batched_tokens,
            max_model_len=resolved.model.max_model_len,
            long_prefill_token_threshold=limits.long_prefill_token_threshold,
            enable_chunked_prefill=limits.enable_chunked_prefill,
            max_steps_in_flight=limits.max_concurrent_steps,
        ),
        kv,
        make_policy(limits.scheduling_policy),
        is_ready=grammars.readiness,
    )
    return EngineCore(
        scheduler,
        executor,
        clock,
        max_steps_in_flight=limits.max_concurrent_steps,
        on_step_done=on_step_done,
        meter=meter,
        grammars=grammars,
    )


def model_identity(checkpoint: Checkpoint, resolved: ResolvedConfig) -> str:
    """What must be equal for two engines' KV to be interchangeable, beside the key and the block size.

    Back ends and instruction sets round differently: their KV is not mixed. Cost: no weights are read.
    """
    kernels = resolved.kernels
    return f"{checkpoint.identity()}:{resolved.model.dtype}:{kernels.kernel_backend}:{kernels.cpu_isa}"
