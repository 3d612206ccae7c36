"""The Responses API through the official client's helpers, on models that were trained for schemas and tools."""

import json

import pytest
from fakes.official_clients import GetWeather, Pet, openai_client

pytest.importorskip("openai", reason="the client is a development extra")
pytestmark = pytest.mark.slow

TOOLS = [
    {
        "type": "function",
        "name": "GetWeather",
        "description": "The weather of a city.",
        "parameters": GetWeather.model_json_schema() | {"additionalProperties": False},
        "strict": True,
    }
]
NAMED = {"type": "function", "name": "GetWeather"}
ABOUT_TOM = "Tom is a cat, three years old. Answer with JSON: name, kind, age."
ABOUT_PARIS = "What is the weather in Paris, in celsius? Use the tool."


@pytest.fixture(scope="module")
def client(trained):
    with openai_client(trained) as made:
        yield made


def fields(given, **others):
    return {"model": "m", "input": given, "temperature": 0, "max_output_tokens": 120} | others


def test_text_is_streamed_as_it_is_answered(client):
    asked = fields("Name three colours.", max_output_tokens=30, instructions="Answer briefly.")
    whole = client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        events = list(stream)
    assert events[-1].response.output_text == whole.output_text != ""
    assert events[-1].response.usage.output_tokens == whole.usage.output_tokens


def test_a_schema_comes_back_as_the_object_it_describes(client):
    answer = client.responses.parse(**fields(ABOUT_TOM, text_format=Pet))
    assert answer.status == "completed"
    assert isinstance(answer.output_parsed, Pet)
    with client.responses.stream(**fields(ABOUT_TOM, text_format=Pet)) as stream:
        kinds = {event.type for event in stream}
        assert stream.get_final_response().output_parsed == answer.output_parsed
    assert {"response.output_text.delta", "response.output_text.done", "response.completed"} <= kinds


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_call_is_streamed_as_it_is_answered(client, choice):
    asked = fields(ABOUT_PARIS, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    (call,) = client.responses.parse(**asked).output
    GetWeather.model_validate(call.parsed_arguments)
    with client.responses.stream(**asked) as stream:
        deltas = [event for event in stream if event.type == "response.function_call_arguments.delta"]
        (again,) = stream.get_final_response().output
    assert deltas[-1].snapshot == again.arguments == call.arguments


def test_results_of_calls_are_used_over_several_turns(client, request):
    is_taught = request.node.callspec.params["trained"] == "qwen"  # SmolLM2's template shows no tools
    history = [{"role": "user", "content": ABOUT_PARIS}]
    for city, degrees in (("Paris", 21), ("Rome", 30)):
        called = client.responses.create(**fields(history, tools=TOOLS, tool_choice=NAMED))
        (call,) = called.output
        arguments = json.loads(call.arguments)
        assert arguments["unit"] in ("celsius", "fahrenheit")
        history += called.output
        result = {"city": city, "degrees": degrees}
        history.append({"type": "function_call_output", "call_id": call.call_id, "output": json.dumps(result)})
        said = client.responses.create(**fields(history, tools=TOOLS, tool_choice="none", max_output_tokens=60))
        assert said.output_text
        assert str(degrees) in said.output_text or not is_taught
        history += [*said.output, {"role": "user", "content": "And in Rome?"}]
