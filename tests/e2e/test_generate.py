"""`octavo generate` as a user runs it: a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from fakes.hf_folder import write_hf_folder, write_safetensors
from fakes.tiny_models import LLAMA
from fakes.tiny_weights import tiny_tensors

OCTAVO = [sys.executable, "-m", "octavo.cli.main"]
SMALL = ["--num-gpu-blocks-override", "40", "--max-num-seqs", "4", "--max-num-batched-tokens", "64"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_hf_folder(tmp_path_factory.mktemp("models") / "tiny"))


def run(*words, **options):
    return subprocess.run([*OCTAVO, *words], capture_output=True, text=True, timeout=60, check=False, **options)


def test_the_text_goes_to_stdout_and_the_timings_to_stderr(folder):
    done = run("generate", "--model", folder, *SMALL, "--max-tokens", "5", "--ignore-eos", "hello")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n")
    for words in ("5 output tokens", "TTFT", "tokens/s", "ended by length"):
        assert words in done.stderr


def test_json_gives_one_object_and_the_prompt_may_be_piped_in(folder):
    words = ["generate", "--model", folder, *SMALL, "--json", "--raw", "--max-tokens", "3", "--ignore-eos"]
    done = run(*words, input="piped in")
    found = json.loads(done.stdout)
    assert (found["prompt"], found["num_output_tokens"], found["finish_reason"]) == ("piped in", 3, "length")
    assert found["ttft_s"] > 0
    assert found["latency_s"] >= found["ttft_s"]


def test_a_model_that_is_not_there_is_one_line_that_says_what_to_run(tmp_path):
    done = run("generate", "hello", env=os.environ | {"OCTAVO_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert "octavo pull smollm2-135m-instruct" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_bad_value_is_one_line_without_a_traceback(folder):
    done = run("generate", "--model", folder, *SMALL, "--temperature", "9", "hello")
    assert done.returncode == 1
    assert done.stderr.startswith("octavo: temperature=9")
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_cleanly(folder):
    words = ["generate", "--model", folder, *SMALL, "--max-tokens", "490", "--ignore-eos", "hello"]
    with subprocess.Popen([*OCTAVO, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert rest.endswith(b"\n")


@pytest.mark.needs_smollm2
def test_the_default_model_answers(smollm2_path):
    options = ["--kv-cache-memory-bytes", "128M", "--max-tokens", "8"]
    done = run("generate", *options, "What is the capital of France? Answer with one word.")
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout


@pytest.mark.needs_smollm2
def test_the_basic_example_runs(smollm2_path, pytestconfig):
    example = pytestconfig.rootpath / "examples" / "basic.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" -> ") == 3


def test_an_answer_that_ends_with_an_error_is_a_failure(tmp_path):
    tensors = dict(tiny_tensors(LLAMA, 1))
    tensors["model.norm.weight"][0] = np.nan
    folder = write_hf_folder(tmp_path / "broken")
    write_safetensors(folder / "model.safetensors", tensors)
    done = run("generate", "--model", str(folder), *SMALL, "hi")
    assert done.returncode == 1
    assert "not finite" in done.stderr


def test_without_prompt_and_standard_input_it_says_what_to_do(folder):
    command = f"{sys.executable} -m octavo.cli.main generate --model {folder} <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "give a prompt" in done.stderr.splitlines()[-1]
