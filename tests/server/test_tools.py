"""Tools over HTTP, on a model of random weights whose template teaches a form of calls."""

import json

import jsonschema
import pytest
from fakes.chat_chunks import add_up, as_said

ROUTE = "/v1/chat/completions"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Bern"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": PARAMETERS}}
CLOCK = {"type": "function", "function": {"name": "clock"}}
OVER = {"chat_template_kwargs": {"enable_thinking": False}}
MAY_THINK = {"chat_template_kwargs": {}}
THINKING = {"chat_template_kwargs": {"enable_thinking": True}}
NAMED = {"type": "function", "function": {"name": "weather"}}


def chat(server, **fields):
    messages = [{"role": "user", "content": "hello"}]
    base = {"messages": messages, "max_tokens": 150, "temperature": 1, "seed": 7, **OVER}
    return server.post(ROUTE, base | fields)


def without_blanks(server):
    """With these JSON has no blanks but those that a form forces: a model of random weights has no end of them."""
    ids = server.post("/tokenize", {"prompt": "\t\r\n ", "add_special_tokens": False}).json["tokens"]
    assert len(ids) == 4
    return {"logit_bias": {str(token_id): -100 for token_id in ids}}


def ask(server, **fields):
    answer = chat(server, **fields)
    assert answer.status == 200, answer.body
    return answer


@pytest.mark.parametrize("stop_at", [150, 40, 1])
@pytest.mark.parametrize("choice", ["required", NAMED, "auto", "none"])
def test_streamed_is_as_not_streamed(taught, choice, stop_at):
    fields = {"tools": [WEATHER, CLOCK], "tool_choice": choice, "n": 3, "logprobs": True, "max_tokens": stop_at}
    whole = [as_said(one) for one in ask(taught, **fields).json["choices"]]
    assert add_up(ask(taught, stream=True, **fields).events) == whole
    assert add_up(ask(taught, stream=True, stream_interval=9, **fields).events) == whole


@pytest.mark.parametrize("parallel", [False, True])
def test_calls_that_must_come_are_valid(taught, parallel):
    fields = {"tools": [WEATHER, CLOCK], "tool_choice": "required", "parallel_tool_calls": parallel, "n": 4}
    ended = 0
    for choice in ask(taught, max_tokens=200, **fields, **without_blanks(taught)).json["choices"]:
        message, reason = choice["message"], choice["finish_reason"]
        assert reason in ("tool_calls", "length")
        if reason == "length":
            continue
        ended += 1
        assert message["content"] is None
        assert parallel or len(message["tool_calls"]) == 1
        for call in message["tool_calls"]:
            assert call["id"].startswith("chatcmpl-tool-")
            arguments = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "weather":
                jsonschema.validate(arguments, PARAMETERS)
            else:
                assert arguments == {}
    assert ended


def test_a_named_tool_is_called_and_the_reason_is_stop(taught, server):
    for running in (taught, server):  # the other's template has no form for calls
        fields = {"tools": [CLOCK, WEATHER], "tool_choice": NAMED, **without_blanks(running)}
        choice = ask(running, **fields).json["choices"][0]
        (call,) = choice["message"]["tool_calls"]
        assert (choice["finish_reason"], call["function"]["name"]) == ("stop", "weather")
        jsonschema.validate(json.loads(call["function"]["arguments"]), PARAMETERS)


def test_of_tools_that_are_allowed_only_one_of_those_is_called(taught):
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    fields = {"tools": [CLOCK, WEATHER], "tool_choice": choice, "parallel_tool_calls": False}
    answer = ask(taught, n=4, **fields, **without_blanks(taught)).json
    ended = [as_said(one) for one in answer["choices"] if one["finish_reason"] != "length"]
    assert ended
    assert {one["finish_reason"] for one in ended} == {"tool_calls"}
    assert {call["name"] for one in ended for call in one["calls"]} == {"weather"}
    alone = ask(taught, **(fields | {"tools": [WEATHER]}), **without_blanks(taught)).json
    assert answer["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", NAMED])
def test_a_call_that_is_cut_is_no_error(taught, choice, stream):
    answer = ask(taught, tools=[WEATHER], tool_choice=choice, max_tokens=1, stream=stream)
    said = add_up(answer.events)[0] if stream else as_said(answer.json["choices"][0])
    assert said["finish_reason"] == "length"


def test_the_model_chooses_between_a_call_and_a_form_of_text(taught):
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    schema["additionalProperties"] = False
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    fields = {"tools": [WEATHER], "response_format": form, "n": 8, "parallel_tool_calls": False}
    fields |= without_blanks(taught)
    choices = [as_said(choice) for choice in ask(taught, **fields).json["choices"]]
    ended = [choice for choice in choices if choice["finish_reason"] != "length"]
    assert ended
    for choice in ended:
        if choice["calls"]:
            assert choice["finish_reason"] == "tool_calls"
            jsonschema.validate(json.loads(choice["calls"][0]["arguments"]), PARAMETERS)
        else:
            jsonschema.validate(json.loads(choice["content"]), schema)


@pytest.mark.parametrize("choice", ["required", NAMED, "none", "auto"])
def test_a_schema_that_is_none_is_named_with_its_tool_and_place(taught, choice):
    bad = {"type": "function", "function": {"name": "bad", "parameters": {"properties": {"x": {"type": "stsring"}}}}}
    answer = chat(taught, tools=[WEATHER, bad], tool_choice=choice)
    assert (answer.status, answer.error["param"]) == (400, "tools")
    assert answer.error["message"].startswith('tools[1].function.parameters at "/properties/x/type"')


def test_what_no_grammar_enforces_is_refused_only_where_it_would_constrain(taught):
    odd = {"type": "function", "function": {"name": "odd", "parameters": {"properties": {"x": {"not": {}}}}}}
    assert chat(taught, tools=[odd], max_tokens=1).status == 200
    answer = chat(taught, tools=[WEATHER, odd], tool_choice="required")
    assert answer.error["message"].startswith('tools[1].function.parameters at "/properties/x/not"')


def test_earlier_calls_and_their_results_reach_the_template(taught):
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "21 degrees"},
    ]
    prompt = ask(taught, messages=messages, tools=[WEATHER], max_tokens=1, return_prompt_text=True).json["prompt_text"]
    assert '"name": "weather"' in prompt
    assert "<|im_start|>tool\n21 degrees<|im_end|>" in prompt


# ---- reasoning ------------------------------------------------------------------------------------------------------


def test_reasoning_that_the_prompt_begins_is_told_from_text(taught):
    answer = ask(taught, max_tokens=9, ignore_eos=True, **THINKING).json
    message, usage = answer["choices"][0]["message"], answer["usage"]
    assert message["content"] is None
    assert message["reasoning"]
    assert message["reasoning"] == message["reasoning_content"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == usage["completion_tokens"] == 9
    for other in (OVER, MAY_THINK):
        plain = ask(taught, max_tokens=9, ignore_eos=True, **other).json
        assert plain["choices"][0]["message"]["reasoning"] is None
        assert not (plain["usage"]["completion_tokens_details"] or {}).get("reasoning_tokens")


def test_reasoning_is_streamed_under_both_names_or_not_at_all(taught):
    events = ask(taught, max_tokens=9, stream=True, **THINKING).events
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    assert any("reasoning" in delta for delta in deltas)
    assert all(delta.get("reasoning") == delta.get("reasoning_content") for delta in deltas)
    hidden = ask(taught, max_tokens=9, stream=True, include_reasoning=False, **THINKING).events
    assert add_up(hidden)[0]["reasoning"] == add_up(hidden)[0]["content"] == ""


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_ends_within_its_budget_and_the_form_begins_behind_it(taught, stream):
    fields = {"structured_outputs": {"choice": ["yes"]}, "thinking_token_budget": 5, "stream": stream, **THINKING}
    answer = ask(taught, **fields)
    said = add_up(answer.events)[0] if stream else as_said(answer.json["choices"][0])
    assert (said["content"], said["finish_reason"]) == ("yes", "stop")
    if not stream:
        assert answer.json["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 5


def test_a_model_that_may_reason_and_does_not_is_bound_too(taught):
    answer = ask(taught, structured_outputs={"choice": ["yes", "no"]}, n=8, max_tokens=30, **MAY_THINK)
    choices = [as_said(choice) for choice in answer.json["choices"]]
    assert {choice["content"] for choice in choices if not choice["reasoning"]} <= {"yes", "no"}
    assert any(choice["reasoning"] for choice in choices) or any(choice["content"] for choice in choices)


def test_a_model_that_may_reason_and_does_is_bound_behind_it(taught):
    first = taught.post("/tokenize", {"prompt": "<think>", "add_special_tokens": False}).json["tokens"][0]
    fields = {"structured_outputs": {"choice": ["yes", "no"]}, "thinking_token_budget": 5, "max_tokens": 60}
    said = as_said(ask(taught, logit_bias={str(first): 100}, **fields, **MAY_THINK).json["choices"][0])
    assert said["reasoning"]
    assert said["content"].strip() in ("yes", "no")


def test_as_many_choices_as_may_be_are_taken_of_a_model_that_may_reason(taught):
    choices = [f"choice {index:>20}" for index in range(4096)]
    answer = ask(taught, structured_outputs={"choice": choices}, max_tokens=60, **MAY_THINK).json["choices"][0]
    assert answer["finish_reason"] in ("stop", "length")


def test_a_constraint_that_reasoning_makes_too_large_is_one_of_its_field(taught):
    schema = {"type": "object", "description": "x" * (131_072 - 40)}
    format = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    assert chat(taught, response_format=format, max_tokens=1, **THINKING).status == 200
    error = chat(taught, response_format=format, **MAY_THINK).error
    assert error["param"] == "response_format"
    assert error["message"].startswith("response_format.json_schema.schema: behind reasoning it has 13")


def test_effort_none_turns_reasoning_off(taught):
    fields = {"reasoning_effort": "none", "max_tokens": 1, "return_prompt_text": True}
    assert ask(taught, **fields, **MAY_THINK).json["prompt_text"].endswith("<think>\n</think>")
    assert ask(taught, **fields, **THINKING).json["prompt_text"].endswith("<think>\n")
    assert chat(taught, reasoning_effort="lots").error["param"] == "reasoning_effort"


def test_a_budget_needs_a_model_that_reasons(server):
    assert chat(server, thinking_token_budget=5).error["param"] == "thinking_token_budget"
    assert chat(server, thinking_token_budget=-1, max_tokens=1).status == 200
