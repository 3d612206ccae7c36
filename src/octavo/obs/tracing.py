"""A span for each request, sent by OpenTelemetry; names of attributes are vLLM's, which follow its GenAI conventions.

Owns: spans, and which client's trace each belongs to.   Does not own: the times in them (events.py).
The OpenTelemetry packages are the extra `otel`, imported only when an endpoint was given.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.obs.events import RequestRecord, SequenceRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

MAX_REMEMBERED = 65536
"""Requests whose parent span is remembered; the oldest is forgotten first."""


FLUSH_TIMEOUT_S = 2.0


class RequestTracer:
    """Turns the records of requests into spans. One per front end."""

    def __init__(self, provider: TracerProvider, model_name: str) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("octavo")
        self._model_name = model_name
        self._parents: OrderedDict[str, dict[str, str]] = OrderedDict()

    def remember(self, request_id: str, traceparent: str | None, tracestate: str | None = None) -> None:
        """The client's headers of W3C Trace Context: the request's span becomes a child of the client's."""
        if traceparent is None:
            return
        self._parents[request_id] = {"traceparent": traceparent, **({"tracestate": tracestate} if tracestate else {})}
        while len(self._parents) > MAX_REMEMBERED:
            self._parents.popitem(last=False)

    def record(self, record: RequestRecord) -> None:
        """Send the span of a request that has ended."""
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        headers = self._parents.pop(record.request_id, None)
        context = TraceContextTextMapPropagator().extract(headers) if headers else None
        offset_s = time.time() - time.monotonic()
        first = record.sequences[0]
        span = self._tracer.start_span(
            "llm_request", context=context, kind=SpanKind.SERVER, start_time=_nanoseconds(first.arrival_s + offset_s)
        )
        span.set_attributes(_attributes(record, self._model_name))
        span.end(end_time=_nanoseconds(max(item.finished_s for item in record.sequences) + offset_s))

    def shutdown(self, timeout_s: float = FLUSH_TIMEOUT_S) -> None:
        """Send what is still here and end; what does not go out in time is lost."""
        # Exporters retry for as long as they see fit, in the caller's thread.
        thread = threading.Thread(target=self._provider.shutdown, name="octavo-traces", daemon=True)
        thread.start()
        thread.join(timeout_s)


def make_tracer(endpoint: str, model_name: str) -> RequestTracer:
    """Spans to an OTLP endpoint: gRPC, or HTTP for an address that begins with http and ends with /v1/traces.

    Raises ConfigError when the packages are not installed.
    """
    try:
        exporter = _make_exporter(endpoint)
        provider = make_provider(exporter)
    except ImportError:
        remedy = "traces need OpenTelemetry, which is not installed: pip install 'octavo[otel]'"
        raise ConfigError([ConfigProblem("otlp_traces_endpoint", endpoint, remedy)]) from None
    return RequestTracer(provider, model_name)


def make_provider(exporter: SpanExporter) -> TracerProvider:
    """A provider that hands batches of spans to this exporter. Raises ImportError."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "octavo"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _make_exporter(endpoint: str) -> SpanExporter:
    if endpoint.startswith("http") and endpoint.rstrip("/").endswith("/v1/traces"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter

        return HttpExporter(endpoint=endpoint)
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter

    return GrpcExporter(endpoint=endpoint, insecure=not endpoint.startswith("https"))


def _attributes(record: RequestRecord, model_name: str) -> dict[str, str | int | float]:
    first = record.sequences[0]
    known: dict[str, str | int | float | None] = {
        "gen_ai.request.id": record.request_id,
        "gen_ai.response.model": model_name,
        "gen_ai.request.max_tokens": first.max_tokens,
        "gen_ai.request.temperature": record.temperature,
        "gen_ai.request.top_p": record.top_p,
        "gen_ai.request.n": len(record.sequences),
        "gen_ai.usage.num_sequences": len(record.sequences),
        "gen_ai.usage.prompt_tokens": first.num_prompt_tokens,
        "gen_ai.usage.completion_tokens": record.num_output_tokens,
        "gen_ai.latency.time_in_queue": first.queue_s,
        "gen_ai.latency.time_to_first_token": _first_token_s(record),
        "gen_ai.latency.e2e": max(item.e2e_s for item in record.sequences),
        "gen_ai.latency.time_in_model_prefill": first.prefill_s,
        "gen_ai.latency.time_in_model_decode": _longest(record, "decode_s"),
        "gen_ai.latency.time_in_model_inference": _longest(record, "inference_s"),
    }
    return {name: value for name, value in known.items() if value is not None}


def _first_token_s(record: RequestRecord) -> float | None:
    found = [item.ttft_s for item in record.sequences if item.ttft_s is not None]
    return min(found, default=None)


def _longest(record: RequestRecord, name: str) -> float | None:
    found = [value for item in record.sequences if (value := _duration(item, name)) is not None]
    return max(found, default=None)


def _duration(sequence: SequenceRecord, name: str) -> float | None:
    value = getattr(sequence, name)
    return None if value is None else float(value)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
