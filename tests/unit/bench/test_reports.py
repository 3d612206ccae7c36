"""Reports have the keys and lines that scripts written for vLLM's benchmarks look for."""

from __future__ import annotations

import pytest

from octavo.base.errors import ConfigError, ValidationError
from octavo.bench.latency import LatencyOptions, LatencyReport, run_latency
from octavo.bench.samples import Sample
from octavo.bench.throughput import ThroughputReport, run_throughput
from octavo.outputs import CompletionOutput, RequestOutput


class FakeGenerate:
    """Stands for LLM.generate: answers with zeros, notes its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, prompts, params, *, use_tqdm):
        self.calls.append((prompts, params))
        chosen = params if isinstance(params, list) else [params] * len(prompts)
        return [
            RequestOutput(
                request_id=str(i),
                prompt=None,
                prompt_token_ids=prompt,
                outputs=[CompletionOutput(index=j, text="", token_ids=[0] * p.max_tokens) for j in range(p.n)],
            )
            for i, (prompt, p) in enumerate(zip(prompts, chosen, strict=True))
        ]


def test_latency_runs_the_same_batch_each_time_and_drops_the_warmup():
    generate = FakeGenerate()
    options = LatencyOptions(input_len=5, output_len=3, batch_size=2, num_iters_warmup=2, num_iters=3)
    report = run_latency(generate, options, vocab_size=50, seed=0)
    assert (len(generate.calls), len(report.latencies)) == (5, 3)
    prompts, params = generate.calls[0]
    assert [len(prompt) for prompt in prompts] == [5, 5]
    assert (params.max_tokens, params.ignore_eos, params.temperature) == (3, True, 1.0)
    assert all(call[0] == prompts for call in generate.calls)


def test_the_latency_report_has_vllms_keys():
    report = LatencyReport(latencies=[1.0, 2.0, 3.0])
    found = report.as_json()
    assert list(found) == ["avg_latency", "latencies", "percentiles"]
    assert list(found["percentiles"]) == ["10", "25", "50", "75", "90", "99"]
    assert str(report).startswith("Avg latency: 2.0 seconds\n10% percentile latency: ")


def test_latency_percentiles_are_interpolated():
    percentiles = LatencyReport(latencies=[5.0, 1.0, 2.0, 9.0]).percentiles
    assert (percentiles[50], percentiles[75]) == (3.5, 6.0)


def test_throughput_counts_requests_and_tokens():
    generate = FakeGenerate()
    report = run_throughput(generate, [Sample([1, 2], 3), Sample([1], 5)], n=2, use_tqdm=False)
    assert (report.num_requests, report.num_prompt_tokens, report.num_output_tokens) == (2, 3, 16)
    assert [p.max_tokens for p in generate.calls[0][1]] == [3, 5]


def test_the_throughput_report_has_vllms_keys_and_line():
    report = ThroughputReport(elapsed_s=2.0, num_requests=4, num_prompt_tokens=6, num_output_tokens=10)
    assert report.as_json() == {
        "elapsed_time": 2.0,
        "num_requests": 4,
        "total_num_tokens": 16,
        "requests_per_second": 2.0,
        "tokens_per_second": 8.0,
    }
    line = "Throughput: 2.00 requests/s, 8.00 total tokens/s, 5.00 output tokens/s"
    assert str(report).splitlines()[0] == line


def test_an_empty_dataset_is_refused():
    with pytest.raises(ConfigError, match="no requests"):
        run_throughput(FakeGenerate(), [])


@pytest.mark.parametrize("name", ["input_len", "output_len", "batch_size", "n"])
def test_a_latency_run_of_nothing_is_refused_by_its_flag(name):
    with pytest.raises(ValidationError, match="--" + name.replace("_", "-") + "=0: must be at least 1"):
        LatencyOptions(**{name: 0})
    with pytest.raises(ValidationError, match="--num-iters-warmup=-1"):
        LatencyOptions(num_iters_warmup=-1)
