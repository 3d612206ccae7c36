from __future__ import annotations

import pytest

from octavo.base.errors import ConfigError
from octavo.core.budget import SchedulerLimits


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        SchedulerLimits(max_num_seqs=0, max_num_batched_tokens=8, max_model_len=1, max_bypass=-1)
    assert [problem.option for problem in caught.value.problems] == ["max_num_seqs", "max_model_len", "max_bypass"]


def test_every_running_sequence_must_be_able_to_advance_in_one_step() -> None:
    with pytest.raises(ConfigError, match="max_num_seqs=9"):
        SchedulerLimits(max_num_seqs=9, max_num_batched_tokens=8, max_model_len=8)


def test_without_chunked_prefill_the_longest_prompt_must_fit_into_a_step() -> None:
    with pytest.raises(ConfigError, match="max_model_len=9"):
        SchedulerLimits(max_num_seqs=1, max_num_batched_tokens=8, max_model_len=9, enable_chunked_prefill=False)
    SchedulerLimits(max_num_seqs=1, max_num_batched_tokens=9, max_model_len=9, enable_chunked_prefill=False)
