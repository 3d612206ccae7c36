"""What the server says about itself in numbers: /metrics, and traces.

Owns: the counters of this front end.   Does not own: what is counted (obs), lines of the log (app.py).
Made before the engine, whose meter it holds; `attach` once the engine is ready.
"""

from __future__ import annotations

from typing import Protocol

from octavo.base.clock import MonotonicClock
from octavo.base.errors import EngineDeadError
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.obs import catalogue
from octavo.obs.counters import CounterLayout, Counters
from octavo.obs.exposition import CONTENT_TYPE, MetricsPage
from octavo.obs.request_meter import RequestMeter
from octavo.obs.tracing import RequestTracer, make_tracer
from octavo.proto.stats import EngineStats

STATS_TIMEOUT_S = 1.0


class StatsSource(Protocol):
    """What a scrape asks of the engine."""

    async def stats(self, timeout_s: float = 1.0) -> EngineStats: ...
    @property
    def config(self) -> ResolvedConfig: ...


class Telemetry:
    """One front end's. Raises ConfigError for traces that cannot be sent."""

    def __init__(self, config: EngineConfig, counters: Counters | None = None) -> None:
        self._counters = counters or Counters.private(CounterLayout(catalogue.FRONT_END_METRICS))
        names = config.model.served_model_name or (config.model.model,)
        endpoint = config.observability.otlp_traces_endpoint
        self.tracer: RequestTracer | None = make_tracer(endpoint, names[0]) if endpoint is not None else None
        sinks = [self.tracer.record] if self.tracer is not None else []
        self.meter = RequestMeter(self._counters, MonotonicClock(), sinks)
        """For the engine's front end: AsyncLLM.start(..., meter=)."""
        self._source: StatsSource | None = None
        self._page: MetricsPage | None = None

    def attach(self, engine: StatsSource) -> None:
        """The engine is ready."""
        config = engine.config
        self._source = engine
        self._page = MetricsPage(
            self._counters,
            model_name=config.model.served_model_names[0],
            max_model_len=config.model.max_model_len,
            cache_config={
                "block_size": config.cache.spec.block_size,
                "num_gpu_blocks": config.cache.spec.num_blocks,
                "cache_dtype": config.model.dtype,
                "enable_prefix_caching": config.cache.enable_prefix_caching,
                "kv_cache_memory_bytes": config.cache.kv_cache_memory_bytes,
            },
        )

    async def render(self) -> tuple[bytes, str]:
        """(page, content type) of /metrics. An engine that does not answer in time is missing from the page."""
        if self._page is None or self._source is None:
            return b"", CONTENT_TYPE
        try:
            stats = [await self._source.stats(STATS_TIMEOUT_S)]
        except EngineDeadError:
            stats = []
        return self._page.render(stats), CONTENT_TYPE

    def note_rejection(self, reason: str) -> None:
        """The queue was full. reason: one of catalogue.REJECTION_REASONS."""
        self._counters.add(catalogue.ADMISSION_REJECTIONS, 1, (reason,))

    def note_http(self, method: str, path: str, status: int, seconds: float) -> None:
        """A request is over. status: of the answer, 499 where the client left before there was one."""
        handler = path if path in catalogue.HTTP_HANDLERS else "other"
        verb = method if method in catalogue.HTTP_METHODS else "other"
        self._counters.add(catalogue.HTTP_REQUESTS, 1, (verb, f"{status // 100}xx", handler))
        self._counters.observe(catalogue.HTTP_DURATION, seconds, (verb, handler))

    def shutdown(self) -> None:
        """Send what is left of the traces."""
        if self.tracer is not None:
            self.tracer.shutdown()
