"""The Messages API through the official client's helpers, on models that were trained for schemas and tools."""

import json

import pytest
from fakes.official_clients import GetWeather, Pet, anthropic_client

anthropic = pytest.importorskip("anthropic", reason="the client is a development extra")
pytestmark = pytest.mark.slow

TOOL = {
    "name": "GetWeather",
    "description": "The weather of a city.",
    "input_schema": GetWeather.model_json_schema() | {"additionalProperties": False},
}
NAMED = {"type": "tool", "name": "GetWeather"}
ABOUT_PARIS = {"role": "user", "content": "What is the weather in Paris, in celsius? Use the tool."}


@pytest.fixture(scope="module")
def client(trained):
    with anthropic_client(trained) as made:
        yield made


@pytest.fixture(scope="module")
def qwen_client(qwen):
    with anthropic_client(qwen) as made:
        yield made


def fields(*messages, extra=None, **others):
    return {
        "model": "m",
        "messages": messages,
        "max_tokens": 120,
        "extra_body": {"temperature": 0} | (extra or {}),
    } | others


def final(client, **asked):
    """The streamed answer, and the kinds of the client's events."""
    with client.messages.stream(**asked) as stream:
        kinds = {event.type for event in stream}
        return stream.get_final_message(), kinds


def test_text_is_streamed_as_it_is_answered(client):
    asked = fields({"role": "user", "content": "Name three colours."}, system="Answer briefly.", max_tokens=30)
    whole = client.messages.create(**asked)
    streamed, kinds = final(client, **asked)
    assert "text" in kinds
    assert streamed.content[0].text == whole.content[0].text
    assert streamed.stop_reason == whole.stop_reason
    counted = client.messages.count_tokens(model="m", messages=asked["messages"], system=asked["system"]).input_tokens
    for usage in (whole.usage, streamed.usage):
        assert usage.input_tokens + usage.cache_read_input_tokens == counted
    assert streamed.usage.output_tokens == whole.usage.output_tokens


def test_a_schema_comes_back_as_the_object_it_describes(client):
    asked = fields({"role": "user", "content": "Tom is a cat, three years old. Answer with JSON: name, kind, age."})
    answer = client.messages.parse(**asked, output_format=Pet)
    assert isinstance(answer.parsed_output, Pet)
    assert answer.stop_reason == "end_turn"
    streamed, _ = final(client, **asked, output_format=Pet)
    assert streamed.parsed_output == answer.parsed_output


@pytest.mark.parametrize("choice", [{"type": "any"}, NAMED], ids=lambda choice: choice["type"])
def test_a_call_is_streamed_as_it_is_answered(client, choice):
    asked = fields(ABOUT_PARIS, tools=[TOOL], tool_choice={**choice, "disable_parallel_tool_use": True})
    whole = client.messages.create(**asked)
    streamed, kinds = final(client, **asked)
    assert "input_json" in kinds
    for answer in (whole, streamed):
        (block,) = answer.content
        assert (answer.stop_reason, block.type, block.name) == ("tool_use", "tool_use", "GetWeather")
        assert GetWeather.model_validate(block.input)
    assert streamed.content[0].input == whole.content[0].input


def test_a_call_that_is_cut_is_the_same_object_streamed_and_not(client):
    for max_tokens in range(12, 28, 3):
        asked = fields(ABOUT_PARIS, tools=[TOOL], tool_choice=NAMED, max_tokens=max_tokens)
        whole = client.messages.create(**asked)
        streamed, _ = final(client, **asked)
        shown, again = ([_essence(block) for block in answer.content] for answer in (whole, streamed))
        assert again == shown


def _essence(block):
    return block.type, getattr(block, "text", None), getattr(block, "input", None)


def test_results_of_calls_are_used_over_several_turns(qwen_client):
    messages = [ABOUT_PARIS]
    for city, degrees in (("Paris", 21), ("Rome", 30)):
        answer = qwen_client.messages.create(**fields(*messages, tools=[TOOL], tool_choice=NAMED))
        (call,) = answer.content
        assert city in call.input["city"]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": json.dumps({"degrees": degrees})}
        messages += [answer.to_param(), {"role": "user", "content": [result]}]
        said = qwen_client.messages.create(**fields(*messages, tools=[TOOL], tool_choice={"type": "none"}))
        assert str(degrees) in said.content[0].text
        messages += [said.to_param(), {"role": "user", "content": "And in Rome?"}]


def test_an_answer_that_was_begun_is_gone_on_with(client):
    asked = fields({"role": "user", "content": "Count from 1 to 9."}, {"role": "assistant", "content": "1, 2, 3, 4,"})
    answer = client.messages.create(**asked | {"max_tokens": 12})
    assert answer.content[0].text.strip().startswith("5")


def test_a_stop_sequence_is_named(client):
    asked = fields({"role": "user", "content": "Count from 1 to 9."}, {"role": "assistant", "content": "1, 2, 3, 4,"})
    answer = client.messages.create(**asked, stop_sequences=["7"])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "7")
    assert "7" not in answer.content[0].text


def test_thinking_is_refused_by_models_that_do_not_reason(client):
    hello = {"role": "user", "content": "Hello."}
    with pytest.raises(anthropic.BadRequestError, match="does not reason"):
        client.messages.create(**fields(hello, max_tokens=1100, thinking={"type": "enabled", "budget_tokens": 1024}))
    answer = client.messages.create(**fields(hello, max_tokens=5, thinking={"type": "adaptive"}))
    assert [block.type for block in answer.content] == ["text"]
