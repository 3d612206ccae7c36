from __future__ import annotations

import pytest
from fakes.scheduling import request

from octavo.base.errors import InvariantError
from octavo.core.kv.sequence import KvSequence
from octavo.core.request import Frame, Request
from octavo.core.state import RequestStatus


def state(**fields: object) -> Request:
    """A request of five prompt tokens."""
    return Request(request(prompt=[1, 2, 3, 4, 5], **fields), 0, KvSequence(), max_model_len=64)  # type: ignore[arg-type]


def test_everything_is_still_to_compute_at_first() -> None:
    assert state().span() == (0, 5)


def test_a_chunk_in_flight_counts_as_scheduled() -> None:
    one = state()
    one.frames.append(Frame(0, 0, 0, 3, 0, False))
    assert one.span() == (3, 5)


def test_a_token_in_flight_is_certain_though_unknown() -> None:
    one = state()
    one.frames.extend([Frame(0, 0, 0, 5, 0, True), Frame(1, 0, 5, 1, 0, True)])
    assert one.span() == (6, 7)


def test_replayed_output_is_known_and_counts_as_output() -> None:
    one = state(output_token_ids=[8, 9], max_tokens=4)
    assert one.span() == (0, 7)
    assert one.num_output_tokens == 2
    assert one.max_total_tokens == 9


def test_after_a_preemption_samples_in_flight_are_waited_for() -> None:
    one = state()
    one.frames.append(Frame(0, 0, 0, 5, 0, True))
    one.roll_back(drop=False)
    assert one.is_draining
    assert one.span() == (0, 6)


def test_after_a_reset_samples_in_flight_are_forgotten() -> None:
    one = state()
    one.frames.append(Frame(0, 0, 0, 5, 0, True))
    one.roll_back(drop=True)
    assert not one.is_draining
    assert one.span() == (0, 5)
    one.frames.append(Frame(1, 1, 0, 2, 0, False))
    assert one.span() == (2, 5)


def test_a_frame_once_dropped_stays_dropped() -> None:
    one = state()
    one.frames.append(Frame(0, 0, 0, 5, 0, True))
    one.roll_back(drop=True)
    one.frames.append(Frame(1, 1, 0, 5, 0, True))
    one.roll_back(drop=False)
    assert one.span() == (0, 6)


@pytest.mark.parametrize(
    ("sampling", "may_read"),
    [
        ({}, True),
        ({"skip_reading_prefix_cache": True}, False),
        ({"prompt_logprobs": 0}, False),
        ({"prompt_logprobs": 1, "skip_reading_prefix_cache": False}, False),
    ],
)
def test_who_may_read_the_prefix_cache(sampling: dict[str, object], may_read: bool) -> None:
    assert state(sampling=sampling).may_read_prefix_cache is may_read


def test_an_illegal_change_of_state_is_our_bug() -> None:
    with pytest.raises(InvariantError, match="WAITING to PREEMPTED"):
        state().move_to(RequestStatus.PREEMPTED)


def test_a_gap_between_frames_is_found() -> None:
    one = state()
    one.frames.extend([Frame(0, 0, 0, 2, 0, False), Frame(1, 0, 3, 2, 0, True)])
    with pytest.raises(InvariantError, match="starts at 3, expected 2"):
        one.check_integrity()
