"""The load generator against a real server, and the benchmarks that start one of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.hf_folder import write_hf_folder
from fakes.tiny_models import LLAMA

from octavo.cli.main import main

DATA = Path(__file__).parents[1] / "data"
TRACE = str(DATA / "mooncake" / "conversation_trace_head.jsonl")
SMALL = [
    "--kernel-backend",
    "reference",
    "--max-model-len",
    "256",
    "--num-gpu-blocks-override",
    "64",
    "--max-num-seqs",
    "4",
    "--max-num-batched-tokens",
    "256",
    "--num-threads",
    "1",
]
SOAKED = [
    "--kernel-backend", "reference", "--max-model-len", "2048", "--kv-cache-memory-bytes", "4M", "--num-threads", "1",
]  # fmt: skip
LENGTHS = ["--input-len", "8", "--output-len", "4"]


def texts(tmp_path):
    """Files of the formats that hold text."""
    custom, sharegpt = tmp_path / "custom.jsonl", tmp_path / "sharegpt.json"
    custom.write_text('{"prompt": "hello"}\n{"prompt": "good morning"}\n')
    turns = [{"from": "human", "value": "how are you"}, {"from": "gpt", "value": "very well, thank you"}]
    sharegpt.write_text(json.dumps([{"conversations": turns}] * 3))
    return custom, sharegpt


@pytest.mark.parametrize("backend", ["openai", "openai-chat"])
def test_every_dataset_runs_against_both_endpoints(backend, server, tiny_folder, tmp_path, capsys):
    custom, sharegpt = texts(tmp_path)
    datasets = (
        ["random", "--random-input-len", "12"],
        ["custom", "--dataset-path", str(custom)],
        ["sharegpt", "--dataset-path", str(sharegpt)],
        ["prefix_repetition", "--prefix-repetition-prefix-len", "16", "--prefix-repetition-suffix-len", "4",
         "--prefix-repetition-num-prefixes", "2"],
        ["mooncake", "--dataset-path", TRACE, "--time-scale", "0.001", "--trace-max-input-len", "20",
         "--trace-max-output-len", "3"],
    )  # fmt: skip
    for index, words in enumerate(datasets):
        name = f"{index}.json"
        common = ["--port", str(server.port), "--backend", backend, "--tokenizer", str(tiny_folder), "--ignore-eos"]
        common += ["--num-prompts", "3", "--output-len", "3", "--save-result", "--result-dir", str(tmp_path)]
        assert main(["bench", "serve", *common, "--result-filename", name, "--dataset-name", *words]) == 0
        found = json.loads((tmp_path / name).read_text())
        assert (found["completed"], found["failed"], found["total_output_tokens"]) == (3, 0, 9), words
        assert found["median_ttft_ms"] > 0
    capsys.readouterr()


def test_serving_cost_measures_both_sides_of_the_same_work(tiny_folder, tmp_path, capsys):
    file = tmp_path / "cost.json"
    words = ["--num-rounds", "2", "--concurrencies", "1", "3", "--idle-s", "0.2", "--output-json", str(file)]
    assert main(["bench", "serving-cost", "--model", str(tiny_folder), *SMALL, *LENGTHS, *words]) == 0
    found = json.loads(file.read_text())
    assert 0 < found["ready_s"] < found["first_token_s"]
    for concurrency in (1, 3):
        runs = found["runs"][str(concurrency)]
        assert [run["num_tokens"] for side in ("served", "offline") for run in runs[side]] == [4 * concurrency] * 4
        assert found["concurrency"][str(concurrency)]["front_end_us_per_token"] > 0
    assert found["engine_rss_mib"] > 10
    assert "From command to ready:" in capsys.readouterr().out


def test_an_overload_is_refused_with_retry_after_and_leaves_no_failure(tiny_folder, tmp_path, capsys):
    file = tmp_path / "overload.json"
    words = ["--concurrency", "4", "--peak-s", "2", "--overload-s", "2", "--factor", "8"]
    words += ["--input-len", "8", "--output-len", "20"]
    words += ["--max-num-queued-reqs", "4", "--output-json", str(file)]
    assert main(["bench", "overload", "--model", str(tiny_folder), *SMALL, *words]) == 0
    found = json.loads(file.read_text())
    overload = found["overload"]
    assert overload["num_refused"] == overload["num_refused_with_retry_after"] > 0
    assert overload["num_completed"] > 0
    assert overload["num_failed"] == 0, overload["first_failure"]
    assert len(found["probe_ttft_s_after"]) == 5
    assert "Goodput, of peak:" in capsys.readouterr().out


def test_a_short_soak_finds_nothing_wrong(tmp_path, capsys):
    folder = write_hf_folder(tmp_path / "long", replace(LLAMA, max_position=2048))
    file = tmp_path / "soak.json"
    words = ["--minutes", "0.06", "--sample-s", "1", "--concurrency", "4", "--max-growth-mib", "200"]
    kinds = ["structured", "json_schema", "tools", "auto_tools", "responses", "messages"]
    words += ["--output-json", str(file), "--png", str(tmp_path / "soak.png"), "--skip", *kinds]
    code = main(["bench", "soak", "--model", str(folder), *SOAKED, *words])
    found = json.loads(file.read_text())
    assert found["findings"] == []
    assert code == 0
    assert found["counts"]["completions 200"] > 0
    assert (tmp_path / "soak.png").exists()
    assert "Nothing left behind, nothing wrong" in capsys.readouterr().out
