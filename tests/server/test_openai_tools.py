"""The official client's helpers for schemas and tools, on models that were trained for them."""

import json

import pytest
from fakes.official_clients import GetTime, GetWeather, Pet, openai_client

openai = pytest.importorskip("openai", reason="the client is a development extra")
pytestmark = pytest.mark.slow

TOOLS = [openai.pydantic_function_tool(GetWeather), openai.pydantic_function_tool(GetTime)]
NAMED = {"type": "function", "function": {"name": "GetWeather"}}
ABOUT_TOM = [{"role": "user", "content": "Tom is a cat, three years old. Answer with JSON: name, kind, age."}]
ABOUT_PARIS = [{"role": "user", "content": "What is the weather in Paris, in celsius? Use the tool."}]


@pytest.fixture(scope="module")
def client(trained):
    with openai_client(trained) as made:
        yield made


@pytest.fixture(scope="module")
def qwen_client(qwen):
    with openai_client(qwen) as made:
        yield made


def fields(messages, **others):
    return {"model": "m", "messages": messages, "temperature": 0, "max_tokens": 120} | others


def test_a_schema_comes_back_as_the_object_it_describes(client):
    answer = client.chat.completions.parse(**fields(ABOUT_TOM, response_format=Pet))
    assert isinstance(answer.choices[0].message.parsed, Pet)
    assert answer.choices[0].finish_reason == "stop"


def test_a_schema_is_streamed_as_it_is_answered(client):
    whole = client.chat.completions.parse(**fields(ABOUT_TOM, response_format=Pet)).choices[0].message
    with client.chat.completions.stream(**fields(ABOUT_TOM, response_format=Pet)) as stream:
        kinds = {event.type for event in stream}
        streamed = stream.get_final_completion().choices[0].message
    assert {"content.delta", "content.done"} <= kinds
    assert (streamed.parsed, streamed.content) == (whole.parsed, whole.content)


def test_any_object_is_json(client):
    answer = client.chat.completions.create(
        **fields(ABOUT_TOM, response_format={"type": "json_object"}, max_tokens=300)
    )
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)


@pytest.mark.parametrize(("choice", "reason"), [("required", "tool_calls"), (NAMED, "stop")])
def test_a_call_is_streamed_as_it_is_answered(client, choice, reason):
    asked = fields(ABOUT_PARIS, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    whole = client.chat.completions.parse(**asked).choices[0]
    (call,) = whole.message.tool_calls
    assert isinstance(call.function.parsed_arguments, GetWeather | GetTime)
    with client.chat.completions.stream(**asked) as stream:
        kinds = {event.type for event in stream}
        streamed = stream.get_final_completion().choices[0]
    assert {"tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
    (again,) = streamed.message.tool_calls
    assert (again.function.name, again.function.arguments) == (call.function.name, call.function.arguments)
    assert (whole.finish_reason, streamed.finish_reason) == (reason, reason)


def test_results_of_calls_are_used_over_several_turns(qwen_client):
    messages = list(ABOUT_PARIS)
    for city, degrees in (("Paris", 21), ("Rome", 30)):
        asked = fields(messages, tools=TOOLS, tool_choice=NAMED)
        message = qwen_client.chat.completions.create(**asked).choices[0].message
        (call,) = message.tool_calls
        assert city in json.loads(call.function.arguments)["city"]
        result = {"role": "tool", "tool_call_id": call.id, "content": json.dumps({"degrees": degrees})}
        messages += [message.model_dump(exclude_none=True), result]
        answer = qwen_client.chat.completions.create(**fields(messages, tools=TOOLS, tool_choice="none"))
        text = answer.choices[0].message.content
        assert str(degrees) in text
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "And in Rome?"}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_the_models_choice_is_strict_once_begun(qwen_client, stream):
    # This small model seldom marks its calls by itself: the token that begins them is made likely.
    (begin,) = qwen_client.post(
        "http://127.0.0.1:" + str(qwen_client.base_url.port) + "/tokenize",
        body={"prompt": "<tool_call>"},
        cast_to=object,
    )["tokens"]
    asked = fields(ABOUT_PARIS, tools=TOOLS, parallel_tool_calls=False, logit_bias={str(begin): 30})
    if stream:
        with qwen_client.chat.completions.stream(**asked) as chunks:
            choice = chunks.get_final_completion().choices[0]
    else:
        choice = qwen_client.chat.completions.create(**asked).choices[0]
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert GetWeather.model_validate_json(call.function.arguments).city == "Paris"


def test_the_model_may_answer_in_words_where_it_may_call(qwen_client):
    asked = fields([{"role": "user", "content": "Say hello."}], tools=TOOLS, max_tokens=20)
    choice = qwen_client.chat.completions.create(**asked).choices[0]
    assert choice.message.content
    assert choice.message.tool_calls is None
