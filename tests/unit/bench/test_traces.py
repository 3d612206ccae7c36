"""Excerpts of the public traces, and prompts that share what the trace says."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

from octavo.base.errors import ConfigError
from octavo.bench.traces import TraceOptions, TraceRow, TraceSamples, check_blocks, read_azure, read_mooncake

DATA = Path(__file__).parents[2] / "data"
MOONCAKE = DATA / "mooncake" / "conversation_trace_head.jsonl"
AZURE = DATA / "azure-llm-2023" / "AzureLLMInferenceTrace_conv_head.csv"
IDS = np.arange(100, 1000)


def samples_of(rows, *, decode=None, seed=0, **options):
    return TraceSamples(rows, TraceOptions(**options), token_ids=IDS, decode=decode, seed=seed)


def shared(first, second):
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))))


def test_mooncake_is_read_in_seconds_and_blocks():
    rows = read_mooncake(MOONCAKE, 1000)
    assert len(rows) == 40
    assert (rows[0].arrival_s, rows[0].num_prompt_tokens, rows[0].num_output_tokens) == (0.0, 6758, 500)
    assert rows[0].hash_ids == tuple(range(14))
    assert rows[-1].arrival_s == 12.0
    check_blocks(rows, 512, MOONCAKE)


def test_azure_is_read_with_its_fractions_from_the_first_request():
    rows = read_azure(AZURE, 1000)
    assert len(rows) == 30
    assert (rows[0].arrival_s, rows[0].num_prompt_tokens, rows[0].num_output_tokens) == (0.0, 374, 44)
    assert rows[1].arrival_s == pytest.approx(50.9951690 - 46.6805900)
    assert not rows[0].hash_ids


def test_only_so_many_rows_are_read():
    assert len(read_mooncake(MOONCAKE, 3)) == len(read_azure(AZURE, 3)) == 3


def test_prompts_share_exactly_the_blocks_with_equal_ids():
    rows = read_mooncake(MOONCAKE, 40)
    prompts = [sample.prompt_token_ids for sample in samples_of(rows)]
    assert [len(prompt) for prompt in prompts] == [row.num_prompt_tokens for row in rows]
    for at, row in enumerate(rows):
        for before, other in enumerate(rows[:at]):
            num_blocks = shared(row.hash_ids, other.hash_ids)
            most = min(num_blocks * 512, row.num_prompt_tokens, other.num_prompt_tokens)
            assert shared(prompts[at], prompts[before]) == pytest.approx(most, abs=2)


def test_a_sample_is_the_same_each_time_and_another_with_another_seed():
    rows = read_mooncake(MOONCAKE, 2)
    samples = samples_of(rows)
    assert samples[1] == samples[1] == samples[-1] == samples[0:2][1]
    assert samples[1] != samples_of(rows, seed=1)[1]
    assert len(samples) == 2
    assert set(samples[0].prompt_token_ids) <= set(IDS.tolist())
    with pytest.raises(IndexError):
        samples[2]


def test_rows_without_ids_share_nothing():
    rows = [TraceRow(arrival_s=0, num_prompt_tokens=50, num_output_tokens=1)] * 2
    first, second = samples_of(rows)
    assert shared(first.prompt_token_ids, second.prompt_token_ids) < 3


def test_times_and_lengths_can_be_scaled_and_cut():
    rows = [TraceRow(arrival_s=4.0, num_prompt_tokens=1000, num_output_tokens=50, hash_ids=(7, 8))]
    samples = samples_of(rows, time_scale=0.5, max_prompt_tokens=600, max_output_tokens=20)
    assert samples.arrivals_s == [2.0]
    assert (len(samples[0].prompt_token_ids), samples[0].num_output_tokens) == (600, 20)
    assert samples[0].prompt_token_ids == samples_of(rows)[0].prompt_token_ids[:600]


def test_equal_blocks_are_equal_text():
    rows = [
        TraceRow(arrival_s=0, num_prompt_tokens=6, num_output_tokens=1, hash_ids=(1, 2)),
        TraceRow(arrival_s=0, num_prompt_tokens=5, num_output_tokens=1, hash_ids=(1, 3)),
    ]
    first, second = samples_of(rows, decode=lambda ids: "".join(f"<{token_id}>" for token_id in ids), block_tokens=4)
    assert first.text.split(">")[:4] == second.text.split(">")[:4]
    assert first.text != second.text


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"timestamp": 0}', "line 1"),
        ("[]", "line 1"),
        ("\n", "no requests"),
        ('{"timestamp": 0, "input_length": 0, "output_length": 1}', "request 1 has 0 and 1 tokens"),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [-1]}', "below 0"),
    ],
)
def test_a_mooncake_file_of_another_form_is_refused(tmp_path, content, problem):
    path = tmp_path / "trace"
    path.write_text(content)
    with pytest.raises(ConfigError, match=problem):
        read_mooncake(path, 10)


@pytest.mark.parametrize(
    "content", ["a,b\n1,2\n", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.1,x,1\n"]
)
def test_an_azure_file_of_another_form_is_refused(tmp_path, content):
    path = tmp_path / "trace"
    path.write_text(content)
    with pytest.raises(ConfigError, match="line 2"):
        read_azure(path, 10)


def test_blocks_of_another_size_are_noticed():
    with pytest.raises(ConfigError, match=r"14 hash ids for 6758 tokens: not blocks of 16.*--trace-block-tokens"):
        check_blocks(read_mooncake(MOONCAKE, 1), 16, MOONCAKE)
