"""A turn over a fake engine that says a given text, cut anywhere."""

import asyncio
import contextlib
from types import SimpleNamespace

import msgspec
import pytest
from fakes.spoken_turns import TEXT, FakeEngine, make_turn

from octavo.parsers.events import fold
from octavo.server.api.usage import UsageMeter
from octavo.server.errors import ApiError
from octavo.server.turn import follow_turn


def run(turn, texts=(TEXT,), size=1000, *, interval=1, reason="stop"):
    engine = FakeEngine(list(texts), size, reason)

    async def collect():
        return [update async for update in follow_turn(SimpleNamespace(engine=engine), turn, interval=interval)]

    updates = asyncio.run(collect())
    assert engine.num_left == 1
    return updates


def said(updates, index=0):
    return fold(event for update in updates if update.index == index for event in update.events)


@pytest.mark.parametrize("interval", [1, 7])
@pytest.mark.parametrize("size", [1, 2, 3, 11, 1000])
def test_what_was_said_does_not_depend_on_how_it_came(size, interval):
    whole = said(run(make_turn()))
    assert (whole.reasoning, whole.content) == ("hm", "Well.")
    assert [(call.name, call.arguments, call.is_complete) for call in whole.calls] == [
        ("f", '{"x": "a\\"b"}', True),
        ("g", "{}", True),
    ]
    turn = make_turn()
    updates = run(turn, size=size, interval=interval)
    assert said(updates) == whole
    assert [token for update in updates for token in update.output.token_ids] == list(map(ord, TEXT))
    assert all(len(update.output.logprobs) == len(update.output.token_ids) for update in updates)
    assert turn.meter.usage().completion_tokens == len(TEXT)
    assert turn.meter.usage().completion_tokens_details.reasoning_tokens == len("\nhm")


def test_each_choice_is_read_for_itself_and_ends_once():
    updates = run(make_turn(3), ["plain", TEXT, "<think>x"], size=4)
    assert [said(updates, index).content for index in range(3)] == ["plain", "Well.", ""]
    assert said(updates, 2).reasoning == "x"
    ends = [(update.index, update.finish_reason) for update in updates if update.finish_reason]
    assert ends == [(0, "stop"), (2, "stop"), (1, "tool_calls")]


@pytest.mark.parametrize(
    ("choice", "reason", "finish_reason"),
    [
        ("auto", "stop", "tool_calls"),
        ("required", "stop", "tool_calls"),
        ("named", "stop", "stop"),
        ("auto", "length", "length"),
        ("required", "length", "length"),
    ],
)
def test_the_reason_is_calls_where_the_model_chose_them_and_was_not_cut(choice, reason, finish_reason):
    for text in (TEXT, TEXT[:-30]):
        assert run(make_turn(choice=choice), [text], reason=reason)[-1].finish_reason == finish_reason


def test_without_calls_the_reason_stays():
    assert run(make_turn(), ["plain"])[-1].finish_reason == "stop"


def test_only_the_first_call_is_passed_on_unless_several_are_wanted():
    assert [call.name for call in said(run(make_turn(parallel=False), size=3)).calls] == ["f"]


def test_reasoning_is_left_out_when_it_is_not_wanted_but_counted():
    turn = make_turn(include_reasoning=False)
    assert said(run(turn)).reasoning == ""
    assert turn.meter.usage().completion_tokens_details.reasoning_tokens == 3


def test_a_call_that_was_cut_keeps_its_part():
    whole = said(run(make_turn(), [TEXT[: TEXT.index("b")]], reason="length", size=2))
    assert [(call.name, call.arguments, call.is_complete) for call in whole.calls] == [("f", '{"x": "a\\"', False)]


def test_a_request_that_fails_raises_and_its_stream_is_left():
    engine = FakeEngine([TEXT], 5, reason="error")

    async def collect():
        async with contextlib.aclosing(follow_turn(SimpleNamespace(engine=engine), make_turn())) as updates:
            return [update async for update in updates]

    with pytest.raises(ApiError) as failed:
        asyncio.run(collect())
    assert failed.value.status == 500
    assert engine.num_left == 1


def test_usage_says_nothing_of_reasoning_where_none_is_looked_for():
    assert msgspec.to_builtins(UsageMeter(reports_cached=True).usage())["completion_tokens_details"] is None
