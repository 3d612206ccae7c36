import msgspec
import pytest

from octavo.base.errors import ValidationError
from octavo.server.api.chat_types import ChatCompletionRequest
from octavo.server.api.sampling_fields import SamplingFields
from octavo.server.errors import ApiError, invalid_value
from octavo.server.responses.request import ResponsesRequest
from octavo.server.responses.translate import LOGPROBS, in_own_names, to_chat_request

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
REFUSED = {
    "previous_response_id": "resp_1",
    "conversation": {"id": "c"},
    "background": True,
    "prompt": {"id": "p"},
    "context_management": [{"type": "compaction"}],
    "moderation": {"model": "m"},
    "messages": [],
    "max_tokens": 5,
    "max_completion_tokens": 5,
    "logprobs": True,
    "response_format": {"type": "text"},
    "reasoning_effort": "low",
    "functions": [],
    "function_call": "auto",
    "echo": True,
    "prompt_logprobs": 1,
    "logprob_token_ids": [1],
    "return_token_ids": True,
    "n": 2,
    "top_logprobs": 2,
    "include": ["message.output_text"],
    "metadata": {"x": "y" * 513},
    "stream_options": {"include_obfuscation": False},
}
HARMLESS = {
    "background": False,
    "store": True,
    "previous_response_id": None,
    "n": 1,
    "echo": False,
    "top_logprobs": 0,
    "max_tool_calls": 3,
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "service_tier": "auto",
    "truncation": "disabled",
    "include": ["reasoning.encrypted_content", "web_search_call.results"],
    "metadata": {str(number): "v" for number in range(16)},
    "reasoning": {"summary": "auto"},
    "tools": [],
}


def translate(**fields):
    return to_chat_request(msgspec.convert({"input": "hi"} | fields, ResponsesRequest), 10)


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_dropped_is_refused_by_its_name(name):
    with pytest.raises(ApiError) as refused:
        translate(**{name: REFUSED[name]})
    assert (refused.value.status, refused.value.param) == (400, name)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_constrain_is_taken(name):
    assert translate(**{name: HARMLESS[name]}) == translate()


def test_every_field_that_all_apis_share_is_passed_on_or_refused():
    examples = {"stop": ["a"], "logit_bias": {"1": 2.0}, "truncation_side": "left", "stream": True, "model": "m"}
    kinds = {"float | None": 0.5, "int | None": 7, "bool | None": True, "str | None": "x"}
    lists = {"stop_token_ids": [1], "allowed_token_ids": [1], "bad_words": ["x"], "guided_choice": ["x"]}
    fields = {}
    for name, kind in SamplingFields.__annotations__.items():
        fields[name] = examples.get(name, lists.get(name, kinds.get(kind)))
    here = {"n", "stream_options", "request_id", "max_tokens", *REFUSED}
    given = {name: value for name, value in fields.items() if value is not None and name not in here}
    assert len(given) > 20
    chat = translate(**given)
    assert {name: getattr(chat, name) for name in given} == given


def test_own_fields_become_those_of_chat():
    chat = translate(
        max_output_tokens=9,
        instructions="be kind",
        reasoning={"effort": "low"},
        parallel_tool_calls=False,
        include=[LOGPROBS],
        top_logprobs=3,
        tools=[{"type": "function", "name": "f"}],
        tool_choice="required",
        include_reasoning=False,
    )
    assert chat == ChatCompletionRequest(
        messages=[{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        max_completion_tokens=9,
        reasoning_effort="low",
        parallel_tool_calls=False,
        logprobs=True,
        top_logprobs=3,
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice="required",
        include_reasoning=False,
    )


@pytest.mark.parametrize("kind", ["text", "json_object"])
def test_a_form_without_a_schema_is_a_response_format(kind):
    assert translate(text={"format": {"type": kind}}).response_format == {"type": kind}


def test_a_schema_gets_the_level_that_chat_has_around_it():
    given = {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}
    inner = {"name": "x", "schema": SCHEMA, "strict": True}
    assert translate(text={"format": given}).response_format == {"type": "json_schema", "json_schema": inner}
    with pytest.raises(ApiError) as refused:
        translate(text={"format": {"type": "json_schema", "name": "x"}})
    assert refused.value.param == "text.format"


def test_verbosity_is_for_the_template_unless_it_is_set_there():
    assert translate(text={"verbosity": "low"}).chat_template_kwargs == {"verbosity": "low"}
    given = {"text": {"verbosity": "low"}, "chat_template_kwargs": {"verbosity": "x", "a": 1}}
    assert translate(**given).chat_template_kwargs == {"verbosity": "x", "a": 1}


def test_truncation_cuts_the_prompt_and_excludes_cutting_it_otherwise():
    assert translate(truncation="auto").truncate_prompt_tokens == -1
    with pytest.raises(ApiError) as refused:
        translate(truncation="auto", truncate_prompt_tokens=4)
    assert refused.value.param == "truncation"


@pytest.mark.parametrize(
    ("error", "message", "param"),
    [
        (
            invalid_value('response_format.json_schema.schema at "/a": no', "response_format"),
            'text.format.schema at "/a": no',
            "text.format",
        ),
        (invalid_value("response_format.type: no", "response_format"), "text.format.type: no", "text.format"),
        (invalid_value("reasoning_effort='x': no", "reasoning_effort"), "reasoning.effort='x': no", "reasoning"),
        (ValidationError("max_tokens=0: no", parameter="max_tokens"), "max_output_tokens=0: no", "max_output_tokens"),
        (invalid_value("tools[0]: no", "tools"), "tools[0]: no", "tools"),
        (ValidationError("top_p=3: no", parameter="top_p"), "top_p=3: no", "top_p"),
    ],
)
def test_errors_name_the_field_that_the_client_sent(error, message, param):
    with pytest.raises(ApiError) as renamed, in_own_names():
        raise error
    assert (renamed.value.message, renamed.value.param, renamed.value.status) == (message, param, 400)
