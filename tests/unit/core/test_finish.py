from __future__ import annotations

from typing import Any

import pytest
from fakes.scheduling import request

from octavo.base.errors import InvariantError
from octavo.core.finish import End, accept_prompt_logprobs, accept_tokens, find_end, make_delta, read_end
from octavo.core.kv.sequence import KvSequence
from octavo.core.request import Frame, Request
from octavo.proto.failure import Failure
from octavo.proto.result import StepResult, TokenLogprobs

EOS = 7
STOP = 9
NOTHING = Failure("request", "nothing is left")


def state(output: list[int], *, max_tokens: int = 10, max_model_len: int = 64, **sampling: Any) -> Request:
    """A request of five prompt tokens with EOS and a stop token, and some output."""
    client = request(
        prompt=[1, 2, 3, 4, 5],
        max_tokens=max_tokens,
        eos_token_ids=(EOS,),
        sampling={"stop_token_ids": [STOP], **sampling},
    )
    made = Request(client, 0, KvSequence(), max_model_len=max_model_len)
    made.token_ids += output
    return made


def sampling_frame(num_drafts: int = 0) -> Frame:
    return Frame(0, 0, 4, 1 + num_drafts, num_drafts, True)


def test_a_text_goes_on_by_default() -> None:
    assert find_end(state([1])) is None


def test_end_of_sequence_has_no_stop_reason() -> None:
    assert find_end(state([1, EOS])) == End("stop", None)


def test_a_stop_token_is_its_own_reason() -> None:
    assert find_end(state([STOP])) == End("stop", STOP)


def test_end_of_sequence_comes_before_stop_tokens() -> None:
    client = request(eos_token_ids=(EOS,), sampling={"stop_token_ids": [EOS]}, output_token_ids=[EOS])
    assert find_end(Request(client, 0, KvSequence(), max_model_len=64)) == End("stop", None)


def test_a_stop_token_comes_before_the_length() -> None:
    assert find_end(state([1, STOP], max_tokens=2)) == End("stop", STOP)


def test_max_tokens_ends_a_text() -> None:
    assert find_end(state([1], max_tokens=2)) is None
    assert find_end(state([1, 1], max_tokens=2)) == End("length")


def test_the_context_length_ends_a_text() -> None:
    assert find_end(state([1, 1], max_model_len=7)) == End("length")


@pytest.mark.parametrize("token_id", [EOS, STOP])
def test_before_min_tokens_no_token_ends_a_text(token_id: int) -> None:
    assert find_end(state([1, token_id], min_tokens=2)) is None
    assert find_end(state([1, 1, token_id], min_tokens=2)) is not None


def test_the_length_ends_a_text_whatever_min_tokens_says() -> None:
    assert find_end(state([1, EOS], min_tokens=9, max_model_len=7)) == End("length")


def test_tokens_behind_an_end_are_not_accepted() -> None:
    one = state([])
    assert accept_tokens(one, sampling_frame(num_drafts=3), [1, EOS, 2, 3]) == (slice(0, 2), End("stop", None))
    assert one.token_ids[5:] == [1, EOS]


@pytest.mark.parametrize("token_ids", [[], [1, 2]])
def test_a_frame_yields_as_many_tokens_as_it_samples(token_ids: list[int]) -> None:
    with pytest.raises(InvariantError, match="samples for"):
        accept_tokens(state([]), sampling_frame(), token_ids)


def test_a_chunk_that_does_not_sample_yields_none() -> None:
    chunk = Frame(0, 0, 0, 3, 0, False)
    assert accept_tokens(state([]), chunk, []) == (slice(0), None)
    with pytest.raises(InvariantError):
        accept_tokens(state([]), chunk, [1])


CONSTRAINED = {"structured_outputs": {"regex": "a*"}}


def test_a_constrained_frame_may_yield_forced_tokens_too() -> None:
    one = state([], **CONSTRAINED)
    assert accept_tokens(one, sampling_frame(), [1, 2, 3]) == (slice(0, 3), None)
    assert one.token_ids[5:] == [1, 2, 3]


def test_forced_tokens_end_where_the_text_does() -> None:
    one = state([], max_tokens=2, **CONSTRAINED)
    assert accept_tokens(one, sampling_frame(), [1, 2, 3], End("stop", is_complete=True)) == (
        slice(0, 2),
        End("length"),
    )


def test_tokens_that_are_known_already_are_not_accepted_twice() -> None:
    one = state([1, 2], **CONSTRAINED)
    behind_the_first = Frame(1, 0, 5, 1, 0, True)
    assert accept_tokens(one, behind_the_first, [2]) == (slice(1, 1), None)
    assert accept_tokens(one, behind_the_first, [2, 3]) == (slice(1, 2), None)
    assert one.token_ids[5:] == [1, 2, 3]


def test_a_token_that_contradicts_a_known_one_is_a_fault() -> None:
    with pytest.raises(InvariantError, match="contradict"):
        accept_tokens(state([1, 2], **CONSTRAINED), Frame(1, 0, 5, 1, 0, True), [3])


def test_an_end_that_the_runner_found_comes_behind_its_tokens() -> None:
    complete = End("stop", is_complete=True)
    assert accept_tokens(state([], **CONSTRAINED), sampling_frame(), [1], complete) == (slice(0, 1), complete)
    assert accept_tokens(state([], **CONSTRAINED), sampling_frame(), [], complete) == (slice(0), complete)


def test_what_the_runner_says_of_an_end() -> None:
    result = StepResult(step_id=0, epoch=0, token_ids=[[1], [2], []], ends={1: None, 2: NOTHING})
    found = [read_end(result, idx) for idx in range(3)]
    assert found == [None, End("stop", is_complete=True), End("error", error=NOTHING)]


def entries(*positions: int) -> list[TokenLogprobs]:
    return [TokenLogprobs([position], [0.0], [1]) for position in positions]


def test_prompt_logprobs_are_handed_on_chunk_by_chunk() -> None:
    one = state([], prompt_logprobs=1)
    assert accept_prompt_logprobs(one, Frame(0, 0, 0, 2, 0, False), entries(1, 2)) == entries(1, 2)
    assert accept_prompt_logprobs(one, Frame(1, 0, 2, 3, 0, True), entries(3, 4)) == entries(3, 4)
    assert accept_prompt_logprobs(one, Frame(2, 0, 5, 1, 0, True), []) == []


def test_prompt_logprobs_computed_again_are_handed_on_once() -> None:
    one = state([], prompt_logprobs=1)
    one.num_prompt_logprobs = 2
    assert accept_prompt_logprobs(one, Frame(0, 0, 0, 2, 0, False), entries(1, 2)) == []
    assert accept_prompt_logprobs(one, Frame(0, 0, 0, 4, 0, False), entries(1, 2, 3, 4)) == entries(3, 4)


def test_a_missing_prompt_logprob_is_an_error() -> None:
    with pytest.raises(InvariantError, match="prompt logprobs"):
        accept_prompt_logprobs(state([], prompt_logprobs=1), Frame(0, 0, 0, 3, 0, False), entries(3))


def test_only_the_first_delta_says_when_the_request_was_scheduled() -> None:
    one = state([])
    one.scheduled_s = 1.5
    deltas = [make_delta(one, token_ids=[1], logprobs=[], prompt_logprobs=[], end=None) for _ in range(2)]
    assert [delta.scheduled_s for delta in deltas] == [1.5, None]
