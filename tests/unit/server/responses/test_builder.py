import msgspec
import pytest
from fakes.response_events import final_response, read_events

from octavo.parsers.events import CallArguments, CallBegun, CallEnded, Content, Reasoning
from octavo.server.api.logprobs import TokenLogprob
from octavo.server.responses.builder import AnswerBuilder
from octavo.server.responses.events import EventBuffer


def logprob(token):
    return TokenLogprob(token=token, logprob=-1.0, bytes=None, top_logprobs=[])


def build(*takes, is_cut=False):
    """(items, names of events without what they begin with)."""
    buffer = EventBuffer()
    builder = AnswerBuilder(buffer.write)
    for take in takes:
        builder.take(*take)
    builder.finish(is_cut=is_cut)
    events = read_events(buffer.take())
    return msgspec.to_builtins(builder.items), [event["type"].removeprefix("response.") for event in events], events


TEXT_ITEM = ["output_item.added", "content_part.added", "{}.delta", "{}.done", "content_part.done", "output_item.done"]
CALL_ITEM = [
    "output_item.added",
    *(f"function_call_arguments.{kind}" for kind in ("delta", "done")),
    "output_item.done",
]


def test_events_come_in_the_order_of_the_official_api():
    said = [Reasoning("hm"), Content("well"), CallBegun(0, "f"), CallArguments(0, "{}"), CallEnded(0)]
    items, names, _ = build((said,))
    reasoning, text = ([name.format(kind) for name in TEXT_ITEM] for kind in ("reasoning_text", "output_text"))
    assert names == [*reasoning, *text, *CALL_ITEM]
    assert [item["type"] for item in items] == ["reasoning", "message", "function_call"]


def test_a_call_without_arguments_has_no_delta():
    items, names, _ = build(([CallBegun(0, "f"), CallEnded(0)],))
    assert names == ["output_item.added", "function_call_arguments.done", "output_item.done"]
    assert (items[0]["arguments"], items[0]["status"]) == ("", "completed")


@pytest.mark.parametrize("after", [Content("x"), Reasoning("x"), CallBegun(1, "g")])
def test_a_call_that_something_else_follows_unclosed_is_incomplete(after):
    items, _, _ = build(([CallBegun(0, "f"), CallArguments(0, "{"), after],))
    assert (items[0]["status"], items[0]["arguments"]) == ("incomplete", "{")
    assert len(items) == 2


def test_ids_tell_kinds_and_calls_apart():
    items, _, _ = build(([Content("a"), CallBegun(0, "f"), CallEnded(0), CallBegun(1, "f"), CallEnded(1)],))
    assert [item["id"].partition("_")[0] for item in items] == ["msg", "fc", "fc"]
    assert items[1]["call_id"].startswith("call_")
    assert items[1]["call_id"] != items[2]["call_id"]


def test_only_the_last_item_of_a_cut_answer_is_incomplete():
    items, _, _ = build(([Reasoning("a"), Content("b")],), is_cut=True)
    assert [item["status"] for item in items] == ["completed", "incomplete"]


def test_logprobs_of_tokens_without_text_come_with_the_next_or_at_the_end():
    items, _, events = build(([], [logprob("a")]), ([Content("ab")], [logprob("b")]), ([], [logprob("end")]))
    deltas = [event for event in events if event["type"].endswith("delta")]
    assert [(event["delta"], [entry["token"] for entry in event["logprobs"]]) for event in deltas] == [
        ("ab", ["a", "b"]),
        ("", ["end"]),
    ]
    assert [entry["token"] for entry in items[0]["content"][0]["logprobs"]] == ["a", "b", "end"]


def test_the_checker_of_streams_finds_what_is_wrong():
    response = {"id": "r", "status": "in_progress", "output": [], "usage": None}
    item = {"id": "m", "type": "message", "status": "in_progress", "content": []}
    begin = [{"type": kind, "response": response} for kind in ("response.created", "response.in_progress")]
    end = {"type": "response.completed", "response": response | {"status": "completed", "output": [item]}}
    with pytest.raises(AssertionError):
        final_response([*begin, end])
    assert final_response([*begin, {**end, "response": response | {"status": "completed"}}])["output"] == []
