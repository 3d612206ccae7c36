"""The Responses API over HTTP and through the official client, on models of random weights."""

import json
import time
from typing import Literal

import jsonschema
import pytest
from fakes.official_clients import openai_client
from fakes.response_events import final_response, read_events, without_random

openai = pytest.importorskip("openai", reason="the client is a development extra")
pydantic = pytest.importorskip("pydantic", reason="comes with the client")

ROUTE = "/v1/responses"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Bern"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "name": "weather", "description": "d", "parameters": PARAMETERS}
CLOCK = {"type": "function", "name": "clock", "parameters": None}
TOOLS = [WEATHER, CLOCK]
NAMED = {"type": "function", "name": "weather"}
ALLOWED = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "weather"}]}
OVER, THINKING = ({"chat_template_kwargs": {"enable_thinking": value}} for value in (False, True))
LOGPROBS = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}


class Answer(pydantic.BaseModel):
    kind: Literal["cat", "dog"]
    is_old: bool


def respond(server, **fields):
    return server.post(ROUTE, {"input": "hello", "max_output_tokens": 150, "temperature": 1, "seed": 7} | fields)


def ask(server, **fields):
    answer = respond(server, **fields)
    assert answer.status == 200, answer.body
    return answer


@pytest.fixture(scope="module")
def no_blanks(taught):
    """With these JSON has no blanks but those that a form forces: a model of random weights has no end of them."""
    ids = taught.post("/tokenize", {"prompt": "\t\r\n ", "add_special_tokens": False}).json["tokens"]
    return {"logit_bias": {str(token_id): -100 for token_id in ids}}


@pytest.fixture(scope="module")
def client(server):
    with openai_client(server) as made:
        yield made


@pytest.fixture(scope="module")
def taught_client(taught):
    with openai_client(taught) as made:
        yield made


# ---- streams --------------------------------------------------------------------------------------------------------


def check_streams(server, **fields):
    """Streamed in either way it is as not streamed, which is returned."""
    whole = ask(server, **fields).json
    for interval in (1, 9):
        events = read_events(ask(server, stream=True, stream_interval=interval, **fields).body)
        final = final_response(events)
        # The prompt is in the cache the second time.
        assert final["usage"].pop("input_tokens_details")["cached_tokens"] >= 0
        assert without_random(final) == without_random(
            whole | {"usage": {key: value for key, value in whole["usage"].items() if key != "input_tokens_details"}}
        )
    return whole


@pytest.mark.parametrize("stop_at", [150, 40, 1])
@pytest.mark.parametrize("choice", ["required", NAMED, ALLOWED, "auto", "none"])
def test_calls_are_streamed_as_not_streamed(taught, choice, stop_at):
    check_streams(taught, tools=TOOLS, tool_choice=choice, max_output_tokens=stop_at, **OVER)


def test_text_with_its_logprobs_is_streamed_as_not_streamed(server):
    whole = check_streams(server, max_output_tokens=20, **LOGPROBS)
    (message,) = whole["output"]
    logprobs = message["content"][0]["logprobs"]
    assert len(logprobs) == whole["usage"]["output_tokens"]
    assert all(len(entry["top_logprobs"]) == 2 for entry in logprobs)


def test_reasoning_is_streamed_as_not_streamed(taught):
    whole = check_streams(taught, max_output_tokens=9, ignore_eos=True, **THINKING)
    (item,) = whole["output"]
    assert (item["type"], item["status"], whole["status"]) == ("reasoning", "incomplete", "incomplete")
    assert item["content"][0]["text"]
    assert whole["usage"]["output_tokens_details"]["reasoning_tokens"] == 9
    assert ask(taught, max_output_tokens=9, include_reasoning=False, **THINKING).json["output"][0]["type"] == "message"


def test_reasoning_and_a_form_behind_it_are_two_items(taught):
    fields = {"thinking_token_budget": 5, "structured_outputs": {"choice": ["yes", "no"]}, "ignore_eos": False}
    whole = check_streams(taught, max_output_tokens=60, **fields, **THINKING)
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message"]
    assert whole["output"][1]["content"][0]["text"].strip() in ("yes", "no")


def test_a_client_that_leaves_ends_its_request(server):
    body = json.dumps({"input": "a", "stream": True, "ignore_eos": True, "max_output_tokens": 200}).encode()
    head = f"POST {ROUTE} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with server.connection() as sock:
        sock.sendall(head.encode() + body)
        seen = b""
        while b"output_text.delta" not in seen:
            seen += sock.recv(1 << 16)
    deadline = time.monotonic() + 2
    while server.get("/load").json["server_load"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- tools and forms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["required", NAMED, ALLOWED])
def test_calls_that_must_come_are_valid(taught, no_blanks, choice):
    fields = {"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False, "max_output_tokens": 250}
    response = ask(taught, **fields, **no_blanks, **OVER).json
    (call,) = response["output"]
    assert (response["status"], call["type"], call["status"]) == ("completed", "function_call", "completed")
    assert (response["tool_choice"], response["tools"]) == (choice, TOOLS)
    if choice != "required":
        assert call["name"] == "weather"
    if call["name"] == "weather":
        jsonschema.validate(json.loads(call["arguments"]), PARAMETERS)


@pytest.mark.parametrize("kind", ["json_schema", "json_object"])
def test_text_has_the_form_that_is_asked_for(taught, no_blanks, kind):
    form = {"type": "json_schema", "name": "weather", "schema": PARAMETERS} if kind == "json_schema" else {"type": kind}
    bias = {"logit_bias": no_blanks["logit_bias"]}
    response = ask(taught, text={"format": form}, max_output_tokens=200, **bias, **OVER).json
    assert response["text"]["format"] == form
    text = response["output"][0]["content"][0]["text"]
    if response["status"] == "completed":
        assert isinstance(json.loads(text), dict)
    if kind == "json_schema":
        jsonschema.validate(json.loads(text), PARAMETERS)


def test_items_of_an_answer_are_the_input_of_the_next(taught_client, taught, no_blanks):
    fields = {"model": taught.get("/v1/models").json["data"][0]["id"], "tools": TOOLS, "temperature": 1}
    extra = {"seed": 7, **no_blanks, **OVER}
    user, history = {"role": "user", "content": "hello"}, []
    for _ in range(2):
        history.append(user)
        first = taught_client.responses.create(
            **fields, input=history, tool_choice=NAMED, max_output_tokens=200, extra_body=extra
        )
        (call,) = first.output
        history += [call, {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"}]
        second = taught_client.responses.create(
            **fields, input=history, tool_choice="none", max_output_tokens=4, extra_body=extra
        )
        history += second.output
    messages = []
    calls = [item for item in history if not isinstance(item, dict) and item.type == "function_call"]
    texts = [item.content[0].text for item in history if not isinstance(item, dict) and item.type == "message"]
    for call, text in zip(calls, texts, strict=True):
        function = {"name": call.name, "arguments": call.arguments}
        messages += [
            user,
            {"role": "assistant", "tool_calls": [{"id": call.call_id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": call.call_id, "content": "21 degrees"},
            {"role": "assistant", "content": text},
        ]
    nested = [
        {"type": "function", "function": {key: tool[key] for key in tool if key != "type" and tool[key]}}
        for tool in TOOLS
    ]
    chat = {"messages": messages[:-1], "tools": nested, "tool_choice": "none", "max_tokens": 4}
    as_chat = taught.post("/v1/chat/completions", chat | extra | {"temperature": 1}).json
    assert as_chat["usage"]["prompt_tokens"] == second.usage.input_tokens
    assert as_chat["choices"][0]["message"]["content"] == second.output_text


# ---- the official client --------------------------------------------------------------------------------------------


def test_the_client_reads_an_answer_and_its_stream(client):
    fields = {"model": "tiny", "input": "hello", "max_output_tokens": 12, "temperature": 0, "metadata": {"a": "b"}}
    whole = client.responses.create(**fields)
    assert (whole.object, whole.model, whole.metadata, whole.store) == ("response", "tiny", {"a": "b"}, False)
    assert whole.id.startswith("resp_")
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens
    text = ""
    for event in client.responses.create(**fields, stream=True):
        text += event.delta if event.type == "response.output_text.delta" else ""
    assert text == whole.output_text != ""
    assert event.type in ("response.incomplete", "response.completed")
    assert event.response.output_text == text


@pytest.mark.parametrize(
    "fields",
    [
        {"max_output_tokens": 9, "temperature": 0, **LOGPROBS, **OVER},
        {"max_output_tokens": 9, "ignore_eos": True, "reasoning": {"effort": "low", "summary": "auto"}, **THINKING},
        {"tools": TOOLS, "tool_choice": NAMED, "text": {"verbosity": "low"}, "service_tier": "auto", **OVER},
        {"tools": TOOLS, "tool_choice": ALLOWED, "max_output_tokens": 9, "truncation": "auto", **OVER},
    ],
    ids=["text", "reasoning", "call", "cut"],
)
def test_answers_and_events_are_of_the_official_types(taught, fields):
    openai.types.responses.Response.model_validate(ask(taught, **fields).json)
    kinds = pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent)
    events = read_events(ask(taught, stream=True, **fields).body)
    assert [kinds.validate_python(event).type for event in events] == [event["type"] for event in events]


def test_the_client_parses_what_has_a_schema(taught_client, no_blanks):
    fields = {"model": None, "input": "hello", "max_output_tokens": 100, "text_format": Answer, "temperature": 1}
    extra = {"seed": 3, **no_blanks, **OVER}
    answer = taught_client.responses.parse(**fields, extra_body=extra)
    assert isinstance(answer.output_parsed, Answer)
    with taught_client.responses.stream(**fields, extra_body=extra) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()
    assert {"response.output_text.delta", "response.output_text.done", "response.completed"} <= kinds
    assert final.output_parsed == answer.output_parsed


def test_the_client_streams_calls(taught_client, no_blanks):
    extra = {"seed": 3, "chat_template_kwargs": {"enable_thinking": False}, **no_blanks}
    fields = {"model": None, "input": "hello", "tools": TOOLS, "tool_choice": NAMED, "temperature": 1}
    with taught_client.responses.stream(**fields, extra_body=extra) as stream:
        deltas = [event for event in stream if event.type == "response.function_call_arguments.delta"]
        (call,) = stream.get_final_response().output
    assert deltas[-1].snapshot == call.arguments
    jsonschema.validate(json.loads(call.arguments), PARAMETERS)


def test_nothing_is_stored(client):
    response = client.responses.create(model="tiny", input="hello", max_output_tokens=1, store=True)
    assert response.store is False
    for call in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError, match="not stored"):
            call(response.id)
    with pytest.raises(openai.BadRequestError, match="nothing is stored") as refused:
        client.responses.create(model="tiny", input="more", previous_response_id=response.id)
    assert refused.value.param == "previous_response_id"


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input"),
        ({"input": [{"role": "user", "content": "x"}] * 5000}, "input"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": "5"}, "max_output_tokens"),
        ({"temperature": 9}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": -7}, "top_k"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [CLOCK, CLOCK]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": "any"}, "tool_choice"),
        ({"text": {"format": {"type": "xml"}}}, "text.format"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "integre"}}}}, "text.format"),
        ({"text": {"format": {"type": "json_object"}}, "guided_regex": "a+"}, "guided_regex"),
        ({"reasoning": {"effort": "huge"}}, "reasoning"),
        ({"include": ["everything"]}, "include"),
        ({"include": LOGPROBS["include"], "top_logprobs": 21}, "top_logprobs"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"best_of": 3}, "best_of"),
        ({"cache_salt": "a/b"}, "cache_salt"),
        ({"model": "none"}, "model"),
    ],
)
def test_what_is_wrong_is_refused_by_the_name_the_client_knows(server, fields, param):
    for stream in (False, True):
        answer = respond(server, **fields, stream=stream)
        assert (answer.status, answer.error["param"]) == (404 if param == "model" else 400, param)


def test_logprobs_are_refused_where_tokens_are_not_all_text(taught):
    answer = respond(taught, **LOGPROBS, **THINKING)
    assert (answer.status, answer.error["param"]) == (400, "include")
    assert respond(taught, **LOGPROBS, max_output_tokens=2, **OVER).status == 200


def test_a_conversation_that_is_too_long_is_refused_unless_it_may_be_cut(server):
    fields = {"input": "word " * 600, "max_output_tokens": 4}
    answer = respond(server, **fields)
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
    assert ask(server, **fields, truncation="auto").json["usage"]["input_tokens"] == 252


def test_another_method_is_not_allowed(server):
    assert server.get(ROUTE).headers["allow"] == "POST"
    assert server.get(ROUTE + "/resp_1/cancel").headers["allow"] == "POST"
    assert server.get(ROUTE + "/resp_1/none").error["message"].startswith("Not Found: /docs")
