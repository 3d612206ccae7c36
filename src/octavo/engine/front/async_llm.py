"""AsyncLLM: one engine for an asyncio program. Prompts in, streams of outputs out.

Owns: the order of the start and of the end, and the way of one request: prepare, open, read, leave.
Does not own: what happens to requests over the engine's deaths (dispatch.py), processes (supervisor.py), texts.

    prompt ─► prepare (threads) ─► PreparedRequest ─► generate ─► Dispatcher ─► link ─► engine
                                                      outputs ◄── OutputStream ◄──────────┘
All methods on one event loop. Nothing blocks it but the start of a process (a few milliseconds).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterable
from typing import Self

from octavo.base.clock import MonotonicClock
from octavo.base.errors import EngineDeadError, ValidationError
from octavo.base.log import get_logger
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.engine.args import EngineArgs
from octavo.engine.front.async_options import AsyncOptions
from octavo.engine.front.dispatch import Dispatcher
from octavo.engine.front.link import EngineLink
from octavo.engine.front.remote import ProcessLink
from octavo.engine.front.starting import make_link, make_preparation, start_both_halves
from octavo.engine.front.streams import OutputStream
from octavo.engine.front.watch import EngineWatch
from octavo.engine.input.front_parts import FrontParts
from octavo.engine.input.preparation import Preparation, RequestTerms
from octavo.engine.input.processor import PreparedRequest
from octavo.engine.input.prompt_pool import PromptPool
from octavo.engine.input.prompts import PromptType
from octavo.engine.input.queue_count import QueueCount
from octavo.engine.output.processor import LiveRequest, facts_of
from octavo.fault.state import EngineEvent, EngineState
from octavo.loading import Tokenizer
from octavo.obs.request_meter import RequestMeter
from octavo.outputs import RequestOutput
from octavo.proto.failure import Failure
from octavo.proto.messages import GetStats, Ping, ResetPrefixCache, ResetReply, StatsReply
from octavo.proto.sampling import SamplingParams
from octavo.proto.stats import EngineStats

logger = get_logger(__name__)


class AsyncLLM:
    """One engine. `start` it, or let the first call do so; `shutdown` at the end, or use as `async with`.

    meter: counts requests; None: nobody does.
    """

    def __init__(
        self, config: EngineConfig, options: AsyncOptions | None = None, *, meter: RequestMeter | None = None
    ) -> None:
        self.options = options or AsyncOptions()
        self._engine_config = config
        self._meter = meter
        self._clock = MonotonicClock()
        on_queue = None if meter is None else meter.load.change_queue
        self._dispatcher = Dispatcher(
            self._clock,
            replay=self.options.replay,
            queue=QueueCount(on_queue),
            on_dropped_frame=None if meter is None else meter.count_dropped_frame,
        )
        self._pool = PromptPool(max_pending=self.options.max_prepare_queue, timeout_s=self.options.prepare_timeout_s)
        self._link: EngineLink | None = None
        self._watch: EngineWatch | None = None
        self._starting: asyncio.Task[None] | None = None
        self._parts: FrontParts | None = None
        self._preparation: Preparation | None = None
        self._pending_prompts = QueueCount(on_queue)

    @classmethod
    async def start(
        cls, config: EngineConfig, options: AsyncOptions | None = None, *, meter: RequestMeter | None = None
    ) -> Self:
        """A running engine. Raises ConfigError, LoadError, CapacityError, EngineDeadError with the cause."""
        llm = cls(config, options, meter=meter)
        await llm.ready()
        return llm

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, options: AsyncOptions | None = None) -> Self:
        """An engine that starts with the first call that needs it."""
        return cls(engine_args.create_engine_config("server"), options)

    # ---- start and end ----------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Start if need be, and return once requests can be served. Raises what `start` raises."""
        if self._preparation is None:
            if self._starting is None:
                self._starting = asyncio.create_task(self._start())
            await asyncio.shield(self._starting)

    async def _start(self) -> None:
        self._link = link = make_link(self._engine_config, self.options, self._dispatcher)
        self._watch = EngineWatch(self._dispatcher, link.kill, stall_timeout_s=self.options.stall_timeout_s)
        self._dispatcher.attach(link, self._watch)
        try:
            self._parts = await start_both_halves(link, self._engine_config)
        except BaseException as error:
            await self._end(0.0)
            self._dispatcher.cause = str(error)
            raise
        self._preparation = make_preparation(
            self._parts, self.config, self.options, self._pool, self._pending_prompts, self._clock
        )

    async def drain(self, timeout_s: float) -> bool:
        """Take nothing new and wait for what runs. False: time was up, and the rest ended with an error."""
        self._dispatcher.note(EngineEvent.DRAIN)
        if await self._dispatcher.streams.wait_until_empty(timeout_s):
            return True
        self._dispatcher.fail_all(Failure("limit", "the server is shutting down and the time to finish was up"))
        return False

    async def shutdown(self, timeout_s: float = 5.0) -> None:
        """End the engine and everything of it; what still runs ends with an error. Idempotent."""
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._end(timeout_s)

    async def _end(self, timeout_s: float) -> None:
        self._dispatcher.close()
        if self._watch is not None:
            self._watch.close()
        self._pool.close()
        if self._preparation is not None:
            self._preparation.close()
        if self._link is not None:
            await self._link.stop(timeout_s)

    async def __aenter__(self) -> Self:
        await self.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    # ---- prompts ----------------------------------------------------------------------------------------------------

    async def preparation(self) -> Preparation:
        """What makes requests of prompts, once the engine is up.

        Raises EngineDeadError where a request would never be served, and what `start` raises.
        """
        await self.ready()
        self._dispatcher.check_admission()
        assert self._preparation is not None
        return self._preparation

    # ---- generating -------------------------------------------------------------------------------------------------

    async def generate(
        self,
        prompt: PromptType | PreparedRequest,
        sampling_params: SamplingParams | None = None,
        request_id: str | None = None,
        *,
        priority: int = 0,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[RequestOutput, None]:
        """Outputs as they come; the last has finished=True. Closing the iterator or cancelling its task aborts.

        deadline_s: seconds from now. A PreparedRequest can be used once, and has the other parameters in it.
        A slow consumer gets fewer, larger outputs. A request that fails on the way ends with an output of
        finish_reason "error" with `error` set. Raises what `preparation` and its `prepare` raise, and CapacityError.
        """
        if not isinstance(prompt, PreparedRequest):
            terms = RequestTerms(
                request_id=request_id or secrets.token_hex(8), priority=priority, deadline_s=deadline_s
            )
            prompt = await (await self.preparation()).prepare(prompt, sampling_params, terms)
        stream = self.open(prompt)
        try:
            async for output in stream:
                yield output
        finally:
            self._dispatcher.leave(stream)

    def open(self, request: PreparedRequest) -> OutputStream:
        """Start a request at once; who does not read its stream to the end must `leave` it. See `generate`."""
        track = None if self._meter is None else self._meter.start(facts_of(request))
        stream = OutputStream(LiveRequest(request, self.model.tokenizer, track))
        self._dispatcher.open(stream)
        return stream

    def leave(self, stream: OutputStream) -> None:
        """Nobody reads this stream any more: its request is aborted if it runs. Idempotent."""
        self._dispatcher.leave(stream)

    async def abort(self, request_ids: str | Iterable[str]) -> None:
        """End requests; their streams end with finish_reason "abort". Unknown ids are ignored."""
        self._dispatcher.abort([request_ids] if isinstance(request_ids, str) else request_ids)

    # ---- the engine -------------------------------------------------------------------------------------------------

    async def stats(self, timeout_s: float = 1.0) -> EngineStats:
        """The engine's counters now. Raises EngineDeadError when it does not answer in time."""
        reply = await self._dispatcher.call(lambda call_id: GetStats(call_id=call_id), timeout_s)
        assert isinstance(reply, StatsReply)
        return reply.stats

    async def check_health(self, timeout_s: float = 1.0) -> None:
        """A live round trip. Raises EngineDeadError when the engine is not healthy or does not answer in time."""
        if not self.state.is_ready:
            reason = f": {self.dead_error}" if self.dead_error else ""
            raise EngineDeadError(f"the engine is {self.state.value}{reason}")
        await self._dispatcher.call(lambda call_id: Ping(call_id=call_id), timeout_s)

    async def reset_prefix_cache(self, *, reset_running: bool = False, timeout_s: float = 5.0) -> bool:
        """Forget all cached prefixes. False: some were in use and nothing was forgotten."""
        reply = await self._dispatcher.call(
            lambda call_id: ResetPrefixCache(call_id=call_id, reset_running=reset_running), timeout_s
        )
        assert isinstance(reply, ResetReply)
        return reply.is_done

    @property
    def state(self) -> EngineState:
        """Where the engine is in its life."""
        return self._dispatcher.state

    @property
    def is_running(self) -> bool:
        """True: requests are taken."""
        return self.state.takes_requests

    @property
    def errored(self) -> bool:
        """True: the engine is dead and will not come back."""
        return self.state is EngineState.DEAD

    @property
    def dead_error(self) -> str | None:
        """Why the engine is dead, or why it last died."""
        return self._dispatcher.cause

    async def wait_dead(self) -> None:
        """Return once the engine is DEAD: shut down, or given up after too many deaths."""
        await self._dispatcher.wait_dead()

    @property
    def num_restarts(self) -> int:
        """Successors that came up."""
        return self._dispatcher.num_restarts

    @property
    def engine_pid(self) -> int | None:
        """Process of the present engine; None: there is none, or it is a thread of this one."""
        return self._link.supervisor.pid if isinstance(self._link, ProcessLink) else None

    @property
    def num_live_requests(self) -> int:
        """Requests that have not ended; those in `prepare` included."""
        return len(self._dispatcher.streams) + self._pending_prompts.num_requests

    @property
    def num_queued_requests(self) -> int:
        """Requests of which the engine has reported nothing yet; those in `prepare` included."""
        return self._dispatcher.streams.queue.num_requests + self._pending_prompts.num_requests

    @property
    def num_queued_tokens(self) -> int:
        """Prompt tokens of the queued requests; an estimate for those in `prepare`."""
        return self._dispatcher.streams.queue.num_tokens + self._pending_prompts.num_tokens

    @property
    def config(self) -> ResolvedConfig:
        """What the engine runs with. Raises EngineDeadError before the start."""
        running = self._dispatcher.running
        if running is None:
            raise EngineDeadError("the engine has not started yet")
        return running.config

    @property
    def model(self) -> FrontParts:
        """What this process has of the model. Raises EngineDeadError before the start."""
        if self._parts is None:
            raise EngineDeadError("the engine has not started yet")
        return self._parts

    def get_tokenizer(self) -> Tokenizer:
        """The model's tokenizer. Raises ValidationError when there is none (skip_tokenizer_init)."""
        if self.model.tokenizer is None:
            raise ValidationError("the engine was started with skip_tokenizer_init: it has no tokenizer")
        return self.model.tokenizer

    @property
    def max_model_len(self) -> int:
        """Longest sequence, prompt and output together, in tokens."""
        return self.config.model.max_model_len
