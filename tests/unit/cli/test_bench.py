"""`octavo bench`: flags reach the measurement, results reach the file."""

from __future__ import annotations

import json

import pytest
from fakes.hf_folder import write_hf_folder

from octavo.cli.main import main

SMALL = ["--num-gpu-blocks-override", "40", "--max-num-seqs", "4", "--max-num-batched-tokens", "64"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_hf_folder(tmp_path_factory.mktemp("models") / "tiny"))


def test_latency_writes_vllms_keys(folder, tmp_path, capsys):
    file = tmp_path / "latency.json"
    lengths = ["--input-len", "4", "--output-len", "2", "--batch-size", "2", "--num-iters-warmup", "1"]
    words = ["bench", "latency", "--model", folder, *SMALL, *lengths, "--num-iters", "3", "--output-json", str(file)]
    assert main(words) == 0
    found = json.loads(file.read_text())
    assert set(found) == {"avg_latency", "latencies", "percentiles"}
    assert len(found["latencies"]) == 3
    assert capsys.readouterr().out.startswith("Avg latency: ")


def test_throughput_of_random_prompts_writes_vllms_keys(folder, tmp_path, capsys):
    file = tmp_path / "throughput.json"
    lengths = ["--input-len", "6", "--output-len", "2", "--prefix-len", "2", "--num-prompts", "5"]
    assert main(["bench", "throughput", "--model", folder, *SMALL, *lengths, "--output-json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert set(found) == {
        "elapsed_time",
        "num_requests",
        "total_num_tokens",
        "requests_per_second",
        "tokens_per_second",
    }
    assert (found["num_requests"], found["total_num_tokens"]) == (5, 5 * (8 + 2))
    assert capsys.readouterr().out.startswith("Throughput: ")


def test_throughput_reads_custom_prompts(folder, tmp_path, capsys):
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "hello"}\n{"prompt": "there"}\n')
    words = ["--dataset-name", "custom", "--dataset-path", str(file), "--output-len", "3"]
    assert main(["bench", "throughput", "--model", folder, *SMALL, *words]) == 0
    assert "Total num output tokens:  6" in capsys.readouterr().out


def test_a_dataset_file_that_is_missing_from_the_flags_is_asked_for(folder, capsys):
    assert main(["bench", "throughput", "--model", folder, *SMALL, "--dataset-name", "sharegpt"]) == 2
    assert "--dataset-path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--input-len", "0"], "--input-len=0"),
        (["--output-len", "-1"], "--output-len=-1"),
        (["--random-range-ratio", "5"], "--random-range-ratio=5.0"),
    ],
)
def test_lengths_that_make_no_request_are_refused_by_flag(folder, capsys, words, named):
    assert main(["bench", "throughput", "--model", folder, *SMALL, *words]) == 2
    assert named in capsys.readouterr().err


def printed_config(words, capsys):
    assert main(["bench", "latency", *words, "--print-config"]) == 0
    return capsys.readouterr().out


def test_latency_caches_no_prefixes_unless_asked(folder, tmp_path, capsys):
    file = tmp_path / "c.yaml"
    file.write_text("max_model_len: 32\n")
    words = ["--model", folder, *SMALL, "--config", str(file)]
    assert "enable_prefix_caching: false" in printed_config(words, capsys)
    assert "enable_prefix_caching: true" in printed_config([*words, "--enable-prefix-caching"], capsys)


def test_a_file_wins_over_the_default_of_latency(folder, tmp_path, capsys):
    file = tmp_path / "c.yaml"
    file.write_text("enable_prefix_caching: true\n")
    assert "enable_prefix_caching: true" in printed_config(["--model", folder, *SMALL, "--config", str(file)], capsys)
