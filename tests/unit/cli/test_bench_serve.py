"""`octavo bench serve` from the command line, against a scripted server."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.hf_folder import write_hf_folder
from fakes.sse_server import Script, running

from octavo.cli.main import main

DATA = Path(__file__).parents[2] / "data"
PLAIN = ["--skip-tokenizer-init", "--random-input-len", "8", "--random-output-len", "3"]


def bench(url, *words):
    return main(["bench", "serve", "--base-url", url, *words])


def test_a_run_prints_the_block_and_writes_the_file(tmp_path, capsys):
    words = ["--num-prompts", "5", "--max-concurrency", "2", "--save-result", "--save-detailed", "--plot-timeline"]
    words += ["--result-dir", str(tmp_path), "--result-filename", "r.json", "--metadata", "version=1", "--label", "a"]
    script = Script()
    with running(script) as url:
        assert bench(url, *PLAIN, *words, "--goodput", "ttft:5000", "--percentile-metrics", "ttft,e2el") == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert (found["completed"], found["failed"], found["version"], found["label"]) == (5, 0, "1", "a")
    assert (found["model_id"], found["max_concurrency"], found["request_rate"]) == ("/models/tiny", 2, "inf")
    assert found["generated_texts"] == ["t0 t1 t2 "] * 5
    assert found["client_cpu_us_per_chunk"] > 0
    assert found["client_num_chunks"] == 5 * 4
    assert found["request_goodput"] == pytest.approx(found["request_throughput"])
    assert found["max_concurrent_requests"] <= 2
    assert (tmp_path / "r.timeline.html").exists()
    assert (tmp_path / "r.timeline.png").exists()
    out = capsys.readouterr().out
    assert "Successful requests:                     5" in out
    assert "Client CPU per chunk (us):" in out
    assert "Mean E2EL (ms):" in out
    assert "TPOT" not in out
    assert script.peak_open <= 2


def test_requests_carry_the_options(capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    script = Script()
    words = ["--num-prompts", "3", "--temperature", "0", "--top-k", "5", "--ignore-eos", "--logprobs", "2"]
    words += [
        "--extra-body",
        '{"min_tokens": 3}',
        "--header",
        "x-a=1",
        "--request-id-prefix",
        "r-",
        "--num-warmups",
        "2",
    ]
    words += ["--lora-modules", "one", "two", "--lora-assignment", "round-robin", "--max-concurrency", "1"]
    with running(script) as url:
        assert bench(url, *PLAIN, *words) == 0
    warmups, sent = script.requests[:2], script.requests[2:]
    assert len(warmups) == 2
    assert [request["headers"]["x-request-id"] for request in sent] == ["r-0", "r-1", "r-2"]
    assert [request["body"].pop("model") for request in sent] == ["one", "two", "one"]
    prompts = [request["body"].pop("prompt") for request in sent]
    assert all(len(prompt) == 8 for prompt in prompts)
    assert sent[0]["body"] == {
        "max_tokens": 3,
        "logprobs": 2,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
        "temperature": 0.0,
        "top_k": 5,
        "min_tokens": 3,
    }
    assert sent[0]["headers"]["authorization"] == "Bearer secret"
    assert sent[0]["headers"]["x-a"] == "1"


def test_chat_prompts_are_text_of_the_models_tokenizer(tmp_path, capsys):
    folder = write_hf_folder(tmp_path / "tiny")
    script = Script()
    words = ["--backend", "openai-chat", "--tokenizer", str(folder), "--num-prompts", "2", "--input-len", "6"]
    with running(script) as url:
        assert bench(url, *words) == 0
    assert [request["path"] for request in script.requests] == ["/v1/chat/completions"] * 2
    (message,) = script.requests[0]["body"]["messages"]
    assert message["role"] == "user"
    assert len(message["content"]) >= 5


def test_tokens_are_counted_by_the_tokenizer_when_the_server_does_not(tmp_path, capsys):
    folder = write_hf_folder(tmp_path / "tiny")
    words = ["--tokenizer", str(folder), "--model", "m", "--num-prompts", "1", "--input-len", "6"]
    with running(Script(sends_usage=False)) as url:
        assert bench(url, *words) == 0
    # "t0 t1 t2 " is nine bytes, none of them merged.
    assert "Total generated tokens:                  9" in capsys.readouterr().out


def test_a_trace_is_replayed_at_its_times_scaled(capsys):
    script = Script()
    words = ["--dataset-name", "mooncake", "--num-prompts", "20", "--time-scale", "0.02"]
    words += ["--dataset-path", str(DATA / "mooncake" / "conversation_trace_head.jsonl"), "--trace-max-output-len", "3"]
    rows = (DATA / "mooncake" / "conversation_trace_head.jsonl").read_text().splitlines()[:20]
    last_s = json.loads(rows[-1])["timestamp"] / 1e3 * 0.02
    with running(script) as url:
        started_s = time.monotonic()
        assert bench(url, *words, "--skip-tokenizer-init", "--trace-max-input-len", "600") == 0
        assert time.monotonic() - started_s >= last_s > 0
    assert {len(request["body"]["prompt"]) for request in script.requests} <= {600, *range(600)}
    assert {request["body"]["max_tokens"] for request in script.requests} == {3}
    # All of its conversations begin with block 0.
    assert len({tuple(request["body"]["prompt"][:512]) for request in script.requests}) == 1


def test_all_requests_failing_is_exit_code_1_and_the_first_errors(capsys):
    with running(Script(status=503)) as url:
        assert bench(url, *PLAIN, "--num-prompts", "12", "--model", "m") == 1
    out = capsys.readouterr().out
    assert "Error 9: HTTP 503 X: no room" in out
    assert "Error 10" not in out
    assert "Failed requests:                         12" in out


def test_one_success_among_failures_is_exit_code_0(capsys):
    script = Script(break_after=1)
    with running(script) as url:
        assert bench(url, *PLAIN, "--num-prompts", "2") == 1
        script.break_after = None
        assert bench(url, *PLAIN, "--num-prompts", "2", "--ready-check-timeout-sec", "5") == 0


def test_a_server_that_is_not_there_is_exit_code_1_with_its_address(capsys):
    assert main(["bench", "serve", "--port", "1", *PLAIN]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["--self-timed"], "--self-timed"),
        (["--ramp-up-strategy", "linear"], "--ramp-up-start-rps"),
        (["--request-rate", "0"], "--request-rate"),
        (["--extra-body", "[]"], "--extra-body"),
        (["--metric-percentiles", "x"], "--metric-percentiles"),
        (["--metric-percentiles", "101"], "--metric-percentiles"),
        (["--percentile-metrics", "ttft,foo"], "--percentile-metrics"),
        (["--goodput", "ttft"], "--goodput"),
        (["--metadata", "x"], "--metadata"),
        (["--header", "x"], "--header"),
        (["--max-concurrency", "0"], "--max-concurrency"),
        (["--request-timeout-sec", "0"], "--request-timeout-sec"),
        (["--timeline-itl-thresholds", "1"], "--timeline-itl-thresholds"),
        (["--num-promts", "1"], "--num-prompts"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_sent(words, flag, capsys):
    assert main(["bench", "serve", "--port", "1", "--skip-tokenizer-init", *words]) == 2
    assert flag in capsys.readouterr().err


def test_more_requests_than_the_shells_limit_of_descriptors_can_be_open(capsys):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with running(Script(num_tokens=2, gap_s=0.2)) as url:
        try:
            # The server is in this process too: both ends of each connection count.
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
            assert bench(url, *PLAIN, "--num-prompts", "100") == 0
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert "Successful requests:                     100" in capsys.readouterr().out


def test_ctrl_c_prints_what_has_finished(tmp_path):
    script = Script(num_tokens=2)
    with running(script) as url:
        words = ["--base-url", url, *PLAIN, "--num-prompts", "200", "--request-rate", "20", "--burstiness", "inf"]
        words += ["--save-result", "--result-dir", str(tmp_path), "--result-filename", "r.json"]
        process = subprocess.Popen(
            [sys.executable, "-m", "octavo.cli.main", "bench", "serve", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline_s = time.monotonic() + 20
        while len(script.requests) < 3 and time.monotonic() < deadline_s:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Interrupted requests:" in out
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["interrupted"] is True
    assert 1 <= found["completed"] < 200
    assert found["failed"] == 0
