"""Forms of text over HTTP, on a model of random weights: what comes is of the form or was cut."""

import json
import re

import jsonschema
import pytest
from fakes.chat_chunks import add_up, as_said

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["cat", "dog"]}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["kind", "age"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "pet", "schema": SCHEMA, "strict": True}}
FIELDS = {
    COMPLETIONS: {"prompt": "hello"},
    CHAT: {"messages": [{"role": "user", "content": "hello"}]},
}


def ask(server, route, **fields):
    answer = server.post(route, FIELDS[route] | {"max_tokens": 200, "temperature": 1, "seed": 3} | fields)
    assert answer.status == 200, answer.body
    return answer


def text_of(server, route, **fields):
    choice = ask(server, route, **fields).json["choices"][0]
    assert choice["finish_reason"] == "stop"
    return choice["text"] if route == COMPLETIONS else choice["message"]["content"]


@pytest.mark.parametrize("route", [COMPLETIONS, CHAT])
@pytest.mark.parametrize(
    "fields",
    [{"response_format": FORMAT}, {"structured_outputs": {"json": SCHEMA}}, {"guided_json": json.dumps(SCHEMA)}],
    ids=lambda fields: next(iter(fields)),
)
def test_a_schema_is_followed_however_it_is_given(server, route, fields):
    jsonschema.validate(json.loads(text_of(server, route, **fields)), SCHEMA)


@pytest.mark.parametrize("route", [COMPLETIONS, CHAT])
@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"structured_outputs": {"regex": "[0-9]{3}-[a-c]+x"}}, "[0-9]{3}-[a-c]+x"),
        ({"guided_regex": "a|bc"}, "a|bc"),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, "yes|no"),
        ({"guided_choice": ["maybe"]}, "maybe"),
        ({"structured_outputs": {"grammar": 'start: "a" "b"+'}}, "ab+"),
        ({"guided_grammar": 'root ::= "x" | "y"'}, "x|y"),
    ],
)
def test_other_forms_are_followed_too(server, route, fields, pattern):
    assert re.fullmatch(pattern, text_of(server, route, **fields))


@pytest.mark.parametrize("fields", [{"response_format": {"type": "json_object"}}, {"guided_json_object": True}])
def test_any_object_begins_as_one(server, fields):
    assert ask(server, CHAT, max_tokens=8, **fields).json["choices"][0]["message"]["content"].startswith("{")


@pytest.mark.parametrize("route", [COMPLETIONS, CHAT])
def test_streamed_is_as_not_streamed_with_several_texts_and_logprobs(server, route):
    fields = {"response_format": FORMAT, "n": 3, "logprobs": 2 if route == COMPLETIONS else True}
    whole = ask(server, route, **fields).json["choices"]
    events = ask(server, route, stream=True, stream_interval=3, **fields).events
    if route == CHAT:
        assert add_up(events) == [as_said(choice) for choice in whole]
        return
    texts = ["", "", ""]
    for event in events[:-1]:
        for choice in event["choices"]:
            texts[choice["index"]] += choice["text"]
    assert texts == [choice["text"] for choice in whole]


def test_a_text_that_is_cut_says_so(server):
    choice = ask(server, CHAT, response_format=FORMAT, max_tokens=3).json["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"].startswith("{")


@pytest.mark.parametrize("route", [COMPLETIONS, CHAT])
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "stsring"}}}},
            'response_format.json_schema.schema at "/type"',
        ),
        (
            {"structured_outputs": {"json": {"properties": {"a/b": {"not": {}}}}}},
            'structured_outputs.json at "/properties/a~1b/not"',
        ),
        ({"guided_json": {"items": {"type": ["x"]}}}, 'guided_json at "/items/type'),
        ({"guided_regex": "("}, "guided_regex"),
    ],
)
def test_a_fault_is_named_with_its_place(server, route, fields, place):
    answer = server.post(route, FIELDS[route] | fields)
    assert (answer.status, answer.error["param"]) == (400, next(iter(fields)))
    assert answer.error["message"].startswith(place)


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("route", [COMPLETIONS, CHAT])
def test_constraints_that_leave_no_token_are_the_requests_own_fault(server, route, is_streamed):
    ids = server.post("/tokenize", {"prompt": "hello", "add_special_tokens": False}).json["tokens"]
    fields = {"structured_outputs": {"choice": ["x"]}, "allowed_token_ids": ids, "stream": is_streamed}
    answer = server.post(route, FIELDS[route] | fields)
    assert (answer.status, answer.error["code"]) == (422, "constraint_failed")
    assert "leave no token" in answer.error["message"]


def test_a_dead_end_in_the_middle_of_a_stream_is_its_error_event(server):
    ids = server.post("/tokenize", {"prompt": "hello", "add_special_tokens": False}).json["tokens"]
    first = server.post("/detokenize", {"tokens": ids[:1]}).json["prompt"]
    fields = {"structured_outputs": {"choice": [first + "~~"]}, "allowed_token_ids": ids, "stream": True}
    answer = server.post(COMPLETIONS, FIELDS[COMPLETIONS] | fields)
    assert answer.status == 200
    *_, error, done = answer.body.decode().strip().split("\n\n")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "constraint_failed"
    assert done == "data: [DONE]"
