"""The Messages API over HTTP and through the official client, on models of random weights."""

import json
import time

import jsonschema
import pytest
from fakes.live_server import LiveServer
from fakes.message_events import add_up, kinds, read_events, without_ids
from fakes.official_clients import anthropic_client

anthropic = pytest.importorskip("anthropic", reason="the client is a development extra")

ROUTE, COUNT = "/v1/messages", "/v1/messages/count_tokens"
KEY = "the-key"
HELLO = {"role": "user", "content": "hello"}
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Bern"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER = {"name": "weather", "description": "d", "input_schema": PARAMETERS}
CLOCK = {"name": "clock", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}
TOOLS = [WEATHER, CLOCK]
ANY, NAMED = {"type": "any"}, {"type": "tool", "name": "weather"}
DISABLED, ADAPTIVE = {"type": "disabled"}, {"type": "adaptive"}
FORM = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False}


def message(server, **fields):
    base = {"messages": [HELLO], "max_tokens": 120, "temperature": 1, "seed": 7}
    return server.post(ROUTE, base | fields)


def ask(server, **fields):
    answer = message(server, **fields)
    assert answer.status == 200, answer.body
    return answer


@pytest.fixture(scope="module")
def no_blanks(taught):
    """With these JSON has no blanks but those that a form forces: a model of random weights has no end of them."""
    ids = taught.post("/tokenize", {"prompt": "\t\r\n ", "add_special_tokens": False}).json["tokens"]
    return {"logit_bias": {str(token_id): -100 for token_id in ids}}


@pytest.fixture(scope="module")
def guarded(tiny_folder, tmp_path_factory):
    """A server with a key and small bounds."""
    options = (
        "--kernel-backend=reference",
        "--max-model-len=256",
        "--num-gpu-blocks-override=64",
        "--served-model-name=tiny",
        f"--api-key={KEY}",
        "--max-body-bytes=2048",
    )
    with LiveServer(tiny_folder, options, {}, tmp_path_factory.mktemp("guarded")) as running:
        yield running


@pytest.fixture(scope="module")
def client(taught):
    with anthropic_client(taught, KEY) as made:
        yield made


@pytest.fixture(scope="module")
def plain(taught):
    """What every request of the client has."""
    return {"model": taught.get("/v1/models").json["data"][0]["id"], "messages": [HELLO]}


# ---- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_tokens", [120, 30, 1])
@pytest.mark.parametrize("choice", [ANY, NAMED, {"type": "auto"}, {"type": "none"}], ids=lambda choice: choice["type"])
@pytest.mark.parametrize("thinking", [DISABLED, ADAPTIVE], ids=lambda thinking: thinking["type"])
def test_streamed_is_as_not_streamed(taught, no_blanks, choice, max_tokens, thinking):
    fields = {"tools": TOOLS, "tool_choice": choice, "max_tokens": max_tokens, "thinking": thinking, **no_blanks}
    ask(taught, **fields)  # from here on the prompt is cached
    whole = without_ids(ask(taught, **fields).json)
    assert without_ids(add_up(read_events(ask(taught, stream=True, **fields).body))) == whole
    assert without_ids(add_up(read_events(ask(taught, stream=True, stream_interval=9, **fields).body))) == whole


@pytest.mark.parametrize("choice", [ANY, NAMED], ids=lambda choice: choice["type"])
def test_calls_that_must_come_are_valid(taught, no_blanks, choice):
    ended = 0
    for seed in range(4):
        fields = {"tools": TOOLS, "tool_choice": choice | {"disable_parallel_tool_use": True}, "seed": seed}
        answer = ask(taught, thinking=DISABLED, max_tokens=200, **fields, **no_blanks).json
        if answer["stop_reason"] == "max_tokens":
            continue
        ended += 1
        (block,) = answer["content"]
        assert (answer["stop_reason"], block["type"]) == ("tool_use", "tool_use")
        tool = {"weather": WEATHER, "clock": CLOCK}[block["name"]]
        jsonschema.validate(block["input"], tool["input_schema"])
    assert ended


@pytest.mark.parametrize("place", ["output_config", "output_format"])
def test_a_form_of_the_text_holds(taught, no_blanks, place):
    form = {"type": "json_schema", "schema": FORM}
    fields = {"output_config": {"format": form}} if place == "output_config" else {"output_format": form}
    answer = ask(taught, thinking=DISABLED, **fields, **no_blanks).json
    assert answer["stop_reason"] == "end_turn"
    jsonschema.validate(json.loads(answer["content"][0]["text"]), FORM)


def test_what_is_thought_is_a_block_of_its_own(taught):
    answer = ask(taught, max_tokens=9, ignore_eos=True, thinking=ADAPTIVE).json
    (block,) = answer["content"]
    assert (block["type"], bool(block["thinking"]), bool(block["signature"])) == ("thinking", True, True)
    assert answer["usage"]["output_tokens_details"]["thinking_tokens"] == answer["usage"]["output_tokens"] == 9
    assert ask(taught, max_tokens=9, ignore_eos=True, thinking=ADAPTIVE | {"display": "omitted"}).json["content"] == []
    (block,) = ask(taught, max_tokens=9, ignore_eos=True, thinking=DISABLED).json["content"]
    assert block["type"] == "text"


def test_a_budget_reaches_the_engine(taught):
    fields = {"max_tokens": 1025, "messages": [HELLO]}
    answer = message(taught, thinking={"type": "enabled", "budget_tokens": 1025}, **fields)
    assert answer.json["error"]["message"] == "thinking.budget_tokens=1025: must be less than max_tokens=1025"


def test_a_stop_sequence_is_named(taught):
    fields = {"thinking": DISABLED, "max_tokens": 40, "ignore_eos": True}
    text = ask(taught, **fields).json["content"][0]["text"]
    stop = next(char for char in text[3:] if char.isascii() and char.isalnum())
    answer = ask(taught, **fields, stop_sequences=["never said", stop]).json
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", stop)
    assert answer["content"][0]["text"] == text[: text.index(stop)]


def test_max_tokens_beyond_the_context_ends_there(taught):
    answer = ask(taught, thinking=DISABLED, max_tokens=100_000, ignore_eos=True).json
    assert answer["stop_reason"] == "model_context_window_exceeded"
    usage = answer["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["output_tokens"] == 1024


def test_an_answer_that_was_begun_is_gone_on_with(taught):
    begun = [HELLO, {"role": "assistant", "content": "The answer is"}]
    asked = {"messages": begun, "add_generation_prompt": False, "continue_final_message": True}
    chat = taught.post("/v1/chat/completions", {"max_tokens": 9, "temperature": 0, **asked}).json
    answer = ask(taught, messages=begun, max_tokens=9, temperature=0).json
    assert answer["content"][0]["text"] == chat["choices"][0]["message"]["content"]


def test_what_was_read_from_the_cache_is_told_apart(taught):
    fields = {"messages": [{"role": "user", "content": "a long story " * 30}], "max_tokens": 1, "thinking": DISABLED}
    first, second = (ask(taught, **fields).json["usage"] for _ in range(2))
    (counted,) = taught.post(COUNT, fields).json.values()
    for usage in (first, second):
        assert usage["input_tokens"] + usage["cache_read_input_tokens"] == counted
        assert usage["cache_creation_input_tokens"] == 0
    assert second["cache_read_input_tokens"] > first["cache_read_input_tokens"]


def test_earlier_turns_reach_the_template(taught):
    thought = {"type": "thinking", "thinking": "hm", "signature": ""}
    call = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "21 degrees", "is_error": True}
    messages = [HELLO, {"role": "assistant", "content": [thought, call]}, {"role": "user", "content": [result]}]
    asked = {"messages": messages, "tools": TOOLS, "system": "be brief"}
    of_chat = [
        {"role": "system", "content": "be brief"},
        HELLO,
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}]},
        {"role": "tool", "tool_call_id": "t1", "name": "weather", "content": "Error: 21 degrees"},
    ]  # fmt: skip
    functions = [{"name": tool["name"], "parameters": tool["input_schema"]} for tool in TOOLS]
    functions[0]["description"] = "d"
    shown = [{"type": "function", "function": function} for function in functions]
    same = taught.post("/tokenize", {"messages": of_chat, "tools": shown}).json["count"]
    assert taught.post(COUNT, asked).json == {"input_tokens": same}


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"temperature": 3}, "temperature"),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "reads text only"),
        ({"tools": [{**WEATHER, "input_schema": {"type": "x"}}]}, 'tools[0].input_schema at "/type"'),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"not": {}}}}}, "output_config.format.schema"),
        ({"vllm_xargs": {"x": 1}}, "vllm_xargs"),
        ({"cache_salt": ""}, "cache_salt"),
        ({"messages": [{"role": "user", "content": "hello " * 1000}]}, "prompt is too long"),
    ],
)
def test_a_wrong_request_is_named(taught, fields, says):
    for stream in (False, True):
        answer = message(taught, stream=stream, **fields)
        body = answer.json
        assert (answer.status, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
        assert says in body["error"]["message"]
        assert body["request_id"] == answer.headers["request-id"]


def test_a_field_that_is_missing_is_named(taught):
    answer = taught.post(ROUTE, {"messages": [HELLO]})
    assert "max_tokens" in answer.json["error"]["message"]
    assert taught.post(COUNT, {"messages": [HELLO]}).status == 200


def test_the_key_has_two_headers(guarded):
    body = {"messages": [HELLO], "max_tokens": 1}
    for good in ({"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}):
        assert guarded.post(COUNT, body, good).status == 200
    for bad in ({}, {"x-api-key": KEY + "x"}, {"authorization": KEY}):
        answer = guarded.post(ROUTE, body, bad)
        assert (answer.status, answer.json["error"]["type"]) == (401, "authentication_error")
    version = {"anthropic-version": "2023-06-01"}
    assert guarded.get("/v1/models", {"x-api-key": KEY}).status == 401
    assert guarded.get("/v1/models", version | {"x-api-key": KEY}).json["data"][0]["type"] == "model"
    refused = guarded.get("/v1/models", version | {"x-api-key": KEY + "x"})
    assert (refused.status, refused.json["error"]["type"]) == (401, "authentication_error")


def test_routes_that_are_not_there_speak_the_same_language(taught):
    error = taught.post(ROUTE + "/batches", {}).json["error"]
    assert error == {"type": "not_found_error", "message": "Not Found: /docs lists the paths there are."}
    assert taught.get(ROUTE).status == 405


def test_the_clients_classes_of_errors(client, plain, guarded):
    asked = {**plain, "max_tokens": 1}
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(**asked, extra_body={"temperature": 9})
    assert (refused.value.type, refused.value.request_id is not None) == ("invalid_request_error", True)
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(**asked | {"model": "none"})
    asked["model"] = "tiny"
    with anthropic_client(guarded, "wrong") as stranger, pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(**asked)
    with anthropic_client(guarded, KEY) as friend:
        with pytest.raises(anthropic.APIStatusError) as large:
            friend.messages.create(**asked | {"messages": [{"role": "user", "content": "x" * 4000}]})
        assert (large.value.status_code, large.value.body["error"]["type"]) == (413, "request_too_large")
        assert friend.messages.create(**asked).usage.output_tokens == 1


# ---- the official client --------------------------------------------------------------------------------------------


def test_the_client_streams_what_it_is_answered(client, plain):
    asked = {**plain, "max_tokens": 20, "thinking": DISABLED}
    own = {"extra_body": {"temperature": 0}}
    whole = client.messages.create(**asked, **own)
    with client.messages.stream(**asked, **own) as stream:
        text = "".join(stream.text_stream)
        streamed = stream.get_final_message()
    assert text == whole.content[0].text == streamed.content[0].text
    assert (streamed.stop_reason, streamed.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)


@pytest.mark.parametrize("max_tokens", [200, 40])
def test_the_client_reads_calls_as_they_come(client, plain, no_blanks, max_tokens):
    asked = {**plain, "tools": TOOLS, "tool_choice": NAMED, "thinking": DISABLED}
    own = {"max_tokens": max_tokens, "extra_body": {"temperature": 0, **no_blanks}}
    (whole,) = client.messages.create(**asked, **own).content
    with client.messages.stream(**asked, **own) as stream:
        assert max_tokens == 40 or any(event.type == "input_json" for event in stream)
        (streamed,) = stream.get_final_message().content
    assert (streamed.name, streamed.input) == (whole.name, whole.input)


def test_the_client_counts(client, plain):
    counted = client.messages.count_tokens(**plain, tools=TOOLS, system="be brief").input_tokens
    alone = client.messages.count_tokens(**plain).input_tokens
    assert counted > alone > 0
    usage = client.messages.create(**plain, max_tokens=1).usage
    assert usage.input_tokens + usage.cache_read_input_tokens == alone


def test_a_stream_that_is_left_ends_its_request(taught, client, plain):
    asked = {**plain, "max_tokens": 900, "extra_body": {"ignore_eos": True}}
    with client.messages.stream(**asked) as stream:
        next(iter(stream))
    deadline = time.monotonic() + 10
    while taught.get("/load").json != {"server_load": 0}:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_order_of_events(taught):
    events = read_events(ask(taught, stream=True, thinking=DISABLED, max_tokens=5, ignore_eos=True).body)
    assert kinds(events) == ["message_start", "start text", "delta text_delta", "stop", "message_delta", "message_stop"]
