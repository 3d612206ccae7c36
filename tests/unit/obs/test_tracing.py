"""A request becomes one span, with vLLM's attributes, in the client's trace."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from octavo.base.errors import ConfigError
from octavo.obs.events import RequestRecord, SequenceRecord
from octavo.obs.tracing import RequestTracer, make_tracer

RECORD = RequestRecord(
    request_id="cmpl-1",
    temperature=0.5,
    top_p=0.9,
    sequences=(
        SequenceRecord(
            num_prompt_tokens=7,
            num_cached_tokens=0,
            num_output_tokens=3,
            max_tokens=16,
            finish_reason="stop",
            arrival_s=100.0,
            scheduled_s=100.5,
            first_token_s=101.0,
            last_token_s=103.0,
            finished_s=103.25,
        ),
    ),
)
TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def traced():
    """A tracer and what it has sent."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    return RequestTracer(provider, "m"), exporter.get_finished_spans


def test_the_span_has_vllms_name_times_and_attributes(traced):
    tracer, spans = traced
    tracer.record(RECORD)
    (span,) = spans()
    assert span.name == "llm_request"
    assert span.kind.name == "SERVER"
    assert (span.end_time - span.start_time) / 1e9 == pytest.approx(3.25, abs=1e-3)
    assert dict(span.attributes) == pytest.approx(
        {
            "gen_ai.request.id": "cmpl-1",
            "gen_ai.response.model": "m",
            "gen_ai.request.max_tokens": 16,
            "gen_ai.request.temperature": 0.5,
            "gen_ai.request.top_p": 0.9,
            "gen_ai.request.n": 1,
            "gen_ai.usage.num_sequences": 1,
            "gen_ai.usage.prompt_tokens": 7,
            "gen_ai.usage.completion_tokens": 3,
            "gen_ai.latency.time_in_queue": 0.5,
            "gen_ai.latency.time_to_first_token": 1.0,
            "gen_ai.latency.e2e": 3.25,
            "gen_ai.latency.time_in_model_prefill": 0.5,
            "gen_ai.latency.time_in_model_decode": 2.0,
            "gen_ai.latency.time_in_model_inference": 2.5,
        }
    )


def test_the_span_is_a_child_of_the_clients(traced):
    tracer, spans = traced
    tracer.remember("cmpl-1", f"00-{TRACE_ID}-{PARENT_ID}-01")
    tracer.record(RECORD)
    (span,) = spans()
    assert f"{span.context.trace_id:032x}" == TRACE_ID
    assert f"{span.parent.span_id:016x}" == PARENT_ID


@pytest.mark.parametrize("header", ["", "garbage", "00-" + "z" * 32 + "-1-01", "x" * 100000])
def test_a_header_that_is_none_starts_a_new_trace(traced, header):
    tracer, spans = traced
    tracer.remember("cmpl-1", header)
    tracer.record(RECORD)
    (span,) = spans()
    assert span.parent is None


def test_what_never_ends_is_forgotten_at_last(traced, monkeypatch):
    tracer, spans = traced
    monkeypatch.setattr("octavo.obs.tracing.MAX_REMEMBERED", 2)
    for request_id in ("cmpl-1", "b", "c"):
        tracer.remember(request_id, f"00-{TRACE_ID}-{PARENT_ID}-01")
    tracer.record(RECORD)
    (span,) = spans()
    assert span.parent is None


def test_the_missing_package_is_one_clear_line(monkeypatch):
    for name in list(sys.modules):
        if name.startswith("opentelemetry"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError) as caught:
        make_tracer("http://127.0.0.1:4317", "m")
    assert str(caught.value).count("\n") == 0
    assert "pip install 'octavo[otel]'" in str(caught.value)


def test_a_collector_that_does_not_answer_holds_up_no_shutdown(traced):
    tracer, _ = traced
    blocked = threading.Event()
    tracer._provider.shutdown = blocked.wait
    started = time.monotonic()
    tracer.shutdown(timeout_s=0.01)
    assert time.monotonic() - started < 1.0
    blocked.set()
