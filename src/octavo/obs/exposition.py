"""/metrics: everything that is counted, in Prometheus' text format 0.0.4.

Owns: a registry of its own, and putting together what front ends and engines count.   Does not own: counting.
Invariant: every series exists from the start, at 0. A scrape reads; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from octavo.obs.catalogue import CounterSpec, GaugeSpec, HistogramSpec, MetricSpec
from octavo.obs.counters import Counters, label_values
from octavo.obs.engine_metrics import add_histogram, cache_config_info, engine_metrics
from octavo.proto.stats import EngineStats, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPage:
    """Renders /metrics of one server.

    cache_config: settings shown by vllm:cache_config_info, block_size and num_gpu_blocks among them.
    """

    def __init__(
        self, counters: Counters, *, model_name: str, max_model_len: int, cache_config: Mapping[str, object]
    ) -> None:
        self._counters = counters
        self._model_name = model_name
        self._max_model_len = max_model_len
        self._cache_config = dict(cache_config)
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)

    def render(self, stats: Sequence[EngineStats]) -> bytes:
        """The page as of now; `stats` of the engines that answered. Cost: about 5 ms."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Snapshot([*self._front_end_metrics(), *self._engine_metrics(stats)]))
        return generate_latest(registry) + generate_latest(self._process)

    def _engine_metrics(self, stats: Sequence[EngineStats]) -> Iterator[Metric]:
        yield from engine_metrics(stats, self._model_name)
        for item in stats:
            yield cache_config_info(self._cache_config, item.engine_idx)

    def _front_end_metrics(self) -> Iterator[Metric]:
        for spec in self._counters.layout.metrics:
            if isinstance(spec, CounterSpec):
                yield self._counter(spec)
            elif isinstance(spec, GaugeSpec):
                yield self._gauge(spec)
            else:
                yield self._histogram(spec)

    def _counter(self, spec: CounterSpec) -> Metric:
        names, common = self._labels(spec)
        family = CounterMetricFamily(spec.name, spec.text, labels=names)
        for values in label_values(spec):
            family.add_metric((*common, *values), self._counters.read(spec, values)[0])
        return family

    def _gauge(self, spec: GaugeSpec) -> Metric:
        names, common = self._labels(spec)
        family = GaugeMetricFamily(spec.name, spec.text, labels=names)
        family.add_metric(common, self._counters.read(spec)[0])
        return family

    def _histogram(self, spec: HistogramSpec) -> Metric:
        names, common = self._labels(spec)
        family = HistogramMetricFamily(spec.name, spec.text, labels=names)
        num_bounds = len(spec.bounds)
        if spec.is_in_tokens:
            num_bounds = sum(bound <= self._max_model_len for bound in spec.bounds)
        for values in label_values(spec):
            *counts, total = self._counters.read(spec, values)
            shown = [*map(int, counts[:num_bounds]), int(sum(counts[num_bounds:]))]
            histogram = Histogram(counts=shown, total=total)
            add_histogram(family, (*common, *values), histogram, spec.bounds[:num_bounds])
        return family

    def _labels(self, spec: MetricSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Label names of a metric, and the values that all its series share."""
        own = tuple(name for name, _ in spec.labels)
        if spec.is_of_engine:
            return ("model_name", "engine", *own), (self._model_name, "0")
        if spec.name.startswith("vllm:"):
            return ("model_name", *own), (self._model_name,)
        return own, ()


class _Snapshot(Collector):
    """Families that were made before."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)
