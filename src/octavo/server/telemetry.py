"""What the server says about itself: /metrics, one log line per request, traces.

Owns: the counters of this front end, putting a request's notes into its line.   Does not own: what is counted (obs).
Made before the engine, whose meter it holds; `attach` once the engine is ready.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from octavo.base.clock import MonotonicClock
from octavo.base.errors import EngineDeadError
from octavo.base.log import get_logger
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.obs import catalogue
from octavo.obs.counters import CounterLayout, Counters
from octavo.obs.exposition import MetricsPage
from octavo.obs.request_log import RequestLine, log_request
from octavo.obs.request_meter import RequestMeter
from octavo.obs.tracing import RequestTracer, make_tracer
from octavo.proto.stats import EngineStats

logger = get_logger(__name__)

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
        self._quiet_paths = frozenset(config.server.disable_access_log_for_endpoints)
        self._logs_requests = not config.server.disable_uvicorn_access_log
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

    async def render(self) -> bytes:
        """The page of /metrics. An engine that does not answer in time is missing from it; empty before `attach`."""
        if self._page is None or self._source is None:
            return b""
        try:
            stats = [await self._source.stats(STATS_TIMEOUT_S)]
        except EngineDeadError:
            stats = []
        return self._page.render(stats)

    def note_rejection(self, reason: str) -> None:
        """The queue was full. reason: one of catalogue.REJECTION_REASONS."""
        self._counters.add(catalogue.ADMISSION_REJECTIONS, 1, (reason,))

    def note_request(
        self, *, method: str, path: str, status: int, seconds: float, request_id: str, notes: Mapping[str, object]
    ) -> None:
        """A request is over. status: of the answer, 499 where the client left before there was one.

        notes: fields of RequestLine that the endpoint knows. Paths that are not logged are not counted either.
        """
        if path in self._quiet_paths:
            return
        handler = path if path in catalogue.HTTP_HANDLERS else "other"
        verb = method if method in catalogue.HTTP_METHODS else "other"
        status_class = f"{status // 100}xx"
        self._counters.add(catalogue.HTTP_REQUESTS, 1, (verb, status_class, handler))
        self._counters.observe(catalogue.HTTP_DURATION, seconds, (verb, handler))
        level = logging.WARNING if status >= 500 else logging.INFO
        if self._logs_requests and logger.isEnabledFor(level):
            line = RequestLine(request_id=request_id, route=path, status=status, e2e_ms=1e3 * seconds)
            log_request(logger, line.with_notes(notes))

    def shutdown(self) -> None:
        """Send what is left of the traces."""
        if self.tracer is not None:
            self.tracer.shutdown()
