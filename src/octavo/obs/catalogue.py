"""The metrics that front ends count: names, labels and buckets, as vLLM has them where it has them.

Owns: the table.   Does not own: counting, the gauges and totals of engines (engine_metrics.py).
Invariant: every label takes its values from a closed set that is written here; nothing of a client's becomes a label.
Names are those in the code of Prometheus' clients: counters get `_total` when they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_TOKENS_BOUND = 10_000_000
"""Longest sequence whose length the histograms tell from a longer one."""


def one_two_five(maximum: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50 ... up to `maximum`."""
    bounds: list[float] = []
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power > maximum:
                return tuple(bounds)
            bounds.append(factor * power)
        power *= 10


TOKEN_BOUNDS = one_two_five(MAX_TOKENS_BOUND)
TTFT_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
TOKEN_TIME_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_TIME_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip
NUM_SEQUENCES_BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0)
HTTP_TIME_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)

FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
TOKEN_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
REJECTION_REASONS = ("max_num_queued_reqs", "max_num_queued_tokens")
HTTP_METHODS = ("GET", "POST", "other")
HTTP_STATUSES = ("2xx", "3xx", "4xx", "5xx")
HTTP_HANDLERS = (
    "/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/models", "/tokenize",
    "/detokenize", "other",
)  # fmt: skip
"""Routes by their pattern; `other` is everything that is not worth a series."""

Labels = tuple[tuple[str, tuple[str, ...]], ...]
"""(label, its values), in order."""


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """A number that only grows."""

    name: str
    text: str
    labels: Labels = ()
    is_of_engine: bool = True
    """The label `engine` is on it."""


@dataclass(frozen=True, slots=True)
class HistogramSpec:
    """A distribution."""

    name: str
    text: str
    bounds: tuple[float, ...]
    labels: Labels = ()
    is_of_engine: bool = True
    is_in_tokens: bool = False
    """Bounds above the longest possible sequence are not shown."""


@dataclass(frozen=True, slots=True)
class GaugeSpec:
    """A number that grows and shrinks; each front end has its part of it."""

    name: str
    text: str
    labels: Labels = ()
    is_of_engine: bool = False


MetricSpec = CounterSpec | HistogramSpec | GaugeSpec

PROMPT_TOKENS = CounterSpec("vllm:prompt_tokens", "Prompt tokens of requests that reached their first token.")
GENERATION_TOKENS = CounterSpec("vllm:generation_tokens", "Tokens generated.")
PROMPT_TOKENS_CACHED = CounterSpec("vllm:prompt_tokens_cached", "Prompt tokens that the prefix cache gave.")
PROMPT_TOKENS_BY_SOURCE = CounterSpec(
    "vllm:prompt_tokens_by_source", "Prompt tokens by where their KV came from.", (("source", TOKEN_SOURCES),)
)
REQUEST_SUCCESS = CounterSpec(
    "vllm:request_success", "Sequences that have ended, by reason.", (("finished_reason", FINISH_REASONS),)
)
ADMISSION_REJECTIONS = CounterSpec(
    "vllm:admission_rejections",
    "Requests refused because the queue was full.",
    (("reason", REJECTION_REASONS),),
    is_of_engine=False,
)
TTFT = HistogramSpec("vllm:time_to_first_token_seconds", "From arrival to the first token.", TTFT_BOUNDS)
ITL = HistogramSpec("vllm:inter_token_latency_seconds", "Between outputs of one sequence.", TOKEN_TIME_BOUNDS)
TIME_PER_OUTPUT_TOKEN = HistogramSpec(
    "vllm:request_time_per_output_token_seconds",
    "Mean time per token after the first, by sequence.",
    TOKEN_TIME_BOUNDS,
)
E2E = HistogramSpec("vllm:e2e_request_latency_seconds", "From arrival to the end.", REQUEST_TIME_BOUNDS)
QUEUE_TIME = HistogramSpec("vllm:request_queue_time_seconds", "From arrival to the first step.", REQUEST_TIME_BOUNDS)
INFERENCE_TIME = HistogramSpec(
    "vllm:request_inference_time_seconds", "From the first step to the last token.", REQUEST_TIME_BOUNDS
)
PREFILL_TIME = HistogramSpec(
    "vllm:request_prefill_time_seconds", "From the first step to the first token.", REQUEST_TIME_BOUNDS
)
DECODE_TIME = HistogramSpec(
    "vllm:request_decode_time_seconds", "From the first token to the last.", REQUEST_TIME_BOUNDS
)
REQUEST_PROMPT_TOKENS = HistogramSpec(
    "vllm:request_prompt_tokens", "Prompt tokens by sequence.", TOKEN_BOUNDS, is_in_tokens=True
)
REQUEST_GENERATION_TOKENS = HistogramSpec(
    "vllm:request_generation_tokens", "Tokens generated by sequence.", TOKEN_BOUNDS, is_in_tokens=True
)
REQUEST_MAX_GENERATION_TOKENS = HistogramSpec(
    "vllm:request_max_num_generation_tokens",
    "Tokens generated by the longest sequence of a request.",
    TOKEN_BOUNDS,
    is_in_tokens=True,
)
PARAMS_MAX_TOKENS = HistogramSpec(
    "vllm:request_params_max_tokens", "max_tokens of requests.", TOKEN_BOUNDS, is_in_tokens=True
)
PARAMS_N = HistogramSpec("vllm:request_params_n", "n of requests.", NUM_SEQUENCES_BOUNDS)
HTTP_REQUESTS = CounterSpec(
    "http_requests",
    "HTTP requests by method, status and handler.",
    (("method", HTTP_METHODS), ("status", HTTP_STATUSES), ("handler", HTTP_HANDLERS)),
    is_of_engine=False,
)
HTTP_DURATION = HistogramSpec(
    "http_request_duration_seconds",
    "Time of HTTP requests, streams included.",
    HTTP_TIME_BOUNDS,
    (("method", HTTP_METHODS), ("handler", HTTP_HANDLERS)),
    is_of_engine=False,
)

DROPPED_FRAMES = CounterSpec(
    "octavo_front_end_dropped_frames", "Frames of the engine that were no messages.", is_of_engine=False
)
ACTIVE_REQUESTS = GaugeSpec("octavo_active_requests", "Requests for text that are being answered.")
QUEUED_REQUESTS = GaugeSpec("octavo_queued_requests", "Requests that the engine has not begun.")
QUEUED_PROMPT_TOKENS = GaugeSpec("octavo_queued_prompt_tokens", "Prompt tokens of the queued requests.")

FRONT_END_METRICS: tuple[MetricSpec, ...] = (
    PROMPT_TOKENS, GENERATION_TOKENS, PROMPT_TOKENS_CACHED, PROMPT_TOKENS_BY_SOURCE, REQUEST_SUCCESS,
    ADMISSION_REJECTIONS, TTFT, ITL, TIME_PER_OUTPUT_TOKEN, E2E, QUEUE_TIME, INFERENCE_TIME, PREFILL_TIME, DECODE_TIME,
    REQUEST_PROMPT_TOKENS, REQUEST_GENERATION_TOKENS, REQUEST_MAX_GENERATION_TOKENS, PARAMS_MAX_TOKENS, PARAMS_N,
    HTTP_REQUESTS, HTTP_DURATION, DROPPED_FRAMES, ACTIVE_REQUESTS, QUEUED_REQUESTS, QUEUED_PROMPT_TOKENS,
)  # fmt: skip
"""Everything a front end counts; the order is that of the counters in memory."""
