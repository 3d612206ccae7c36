from __future__ import annotations

import pytest

from octavo.bench.serve.speculation import SpeculationCounters, parse_counters

TEXT = """# HELP vllm:spec_decode_num_drafts_total Number of drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.79e+09
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 150.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 90.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="1"} 60.0
vllm:generation_tokens_total{engine="0",model_name="m"} 5.0
"""


def test_counters_are_read_and_subtracted():
    after = parse_counters(TEXT)
    before = SpeculationCounters(
        num_drafts=50, num_draft_tokens=150, num_accepted_tokens=100, accepted_by_position={0: 60}
    )
    found = after.since(before)
    assert found.num_drafts == 50
    assert found.acceptance_rate == pytest.approx(100 / 3)
    assert found.acceptance_length == 2.0
    assert found.rates_by_position == [0.6, 1.2]


def test_engines_are_added():
    assert parse_counters(TEXT + TEXT.replace('engine="0"', 'engine="1"')).num_drafts == 200


def test_a_server_without_the_counters_has_none():
    assert parse_counters("vllm:generation_tokens_total 5.0\n") is None


def test_no_draft_is_no_division():
    found = SpeculationCounters(accepted_by_position={0: 0.0})
    assert (found.acceptance_rate, found.acceptance_length, found.rates_by_position) == (0.0, 0.0, [])
