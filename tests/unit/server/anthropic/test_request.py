import msgspec
import pytest

from octavo.server.anthropic.message_types import CountTokensRequest, MessagesRequest
from octavo.server.anthropic.request import to_chat, to_prompt
from octavo.server.errors import ApiError

MESSAGES = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
TOOL = {"name": "f", "description": "d", "input_schema": SCHEMA}
SHOWN = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
FORM = {"type": "json_schema", "schema": SCHEMA}


def chat_of(**fields):
    request = {"model": "m", "max_tokens": 4000, "messages": MESSAGES} | fields
    return to_chat(msgspec.convert(request, MessagesRequest))


def test_the_plain_fields_are_those_of_chat():
    chat = chat_of(temperature=0.5, top_p=0.9, top_k=7, stream=True, stop_sequences=["a", "b"], cache_salt="s", seed=3)
    assert (chat.model, chat.max_tokens, chat.messages) == ("m", 4000, MESSAGES)
    assert (chat.temperature, chat.top_p, chat.top_k, chat.stream, chat.stop) == (0.5, 0.9, 7, True, ["a", "b"])
    assert (chat.cache_salt, chat.seed) == ("s", 3)
    assert (chat.add_generation_prompt, chat.continue_final_message) == (True, False)


def test_what_says_nothing_of_the_answer_is_taken_and_forgotten():
    told = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "cache_control": {"type": "ephemeral"},
        "speed": "fast",
    }
    assert chat_of(**told) == chat_of()


def test_an_answer_at_the_end_is_gone_on_with():
    chat = chat_of(messages=[*MESSAGES, {"role": "assistant", "content": "So"}])
    assert (chat.add_generation_prompt, chat.continue_final_message) == (False, True)


def test_a_tool_is_shown_in_the_order_of_the_chat_api():
    """Templates print it as it is: another order is another prompt."""
    (tool,) = chat_of(tools=[{"input_schema": SCHEMA, "strict": True, "description": "d", "name": "f"}]).tools
    assert list(tool["function"]) == ["name", "description", "parameters", "strict"]


@pytest.mark.parametrize(
    ("choice", "of_chat"),
    [
        (None, None),
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_tools_and_the_choice_of_them(choice, of_chat):
    chat = chat_of(tools=[{**TOOL, "cache_control": {"type": "ephemeral"}}], tool_choice=choice)
    assert (chat.tools, chat.tool_choice, chat.parallel_tool_calls) == ([SHOWN], of_chat, None)
    if choice is not None:
        chat = chat_of(tools=[TOOL], tool_choice={**choice, "disable_parallel_tool_use": True})
        assert chat.parallel_tool_calls is False


def test_a_strict_tool_stays_strict():
    (tool,) = chat_of(tools=[{**TOOL, "strict": True, "type": "custom"}]).tools
    assert tool["function"]["strict"] is True


def test_no_tools_are_no_tools():
    assert chat_of(tools=[], tool_choice={"type": "auto"}).tools is None


@pytest.mark.parametrize(
    ("thinking", "variable", "budget", "included"),
    [
        ({"type": "enabled", "budget_tokens": 1024}, True, 1024, None),
        ({"type": "enabled", "budget_tokens": 2000, "display": "omitted"}, True, 2000, False),
        ({"type": "adaptive"}, True, None, None),
        ({"type": "adaptive", "display": "summarized"}, True, None, None),
        ({"type": "disabled"}, False, None, None),
    ],
)
def test_thinking_is_said_to_the_template_and_bounded(thinking, variable, budget, included):
    chat = chat_of(thinking=thinking)
    assert chat.chat_template_kwargs == {"enable_thinking": variable, "thinking": variable}
    assert (chat.thinking_token_budget, chat.include_reasoning) == (budget, included)


def test_without_thinking_the_template_decides_and_the_requests_own_variables_win():
    assert chat_of().chat_template_kwargs == {}
    own = {"enable_thinking": False, "x": 1}
    chat = chat_of(thinking={"type": "adaptive"}, chat_template_kwargs=own)
    assert chat.chat_template_kwargs == {**own, "thinking": True}


@pytest.mark.parametrize("fields", [{"output_config": {"format": FORM, "effort": "low"}}, {"output_format": FORM}])
def test_a_form_of_the_text_is_a_response_format(fields):
    chat = chat_of(**fields)
    assert chat.response_format["json_schema"]["schema"] == SCHEMA
    assert chat.reasoning_effort == fields.get("output_config", {}).get("effort")


KEPT = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}


@pytest.mark.parametrize("fields", [{"context_management": KEPT}, {"mcp_servers": []}, {"container": None}])
def test_what_asks_for_nothing_is_not_refused(fields):
    assert chat_of(**fields) == chat_of()


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"max_tokens": -1}, "max_tokens=-1"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens=None: must be at least 1024"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1023}}, "thinking.budget_tokens=1023: must be at least"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, "thinking.budget_tokens=4000: must be less than"),
        ({"thinking": {"type": "adaptive", "budget_tokens": 1024}}, "thinking.budget_tokens: not with type adaptive"),
        ({"tool_choice": {"type": "any"}}, "tool_choice: there are no tools"),
        ({"tool_choice": {"type": "tool", "name": "f"}}, "tool_choice: there are no tools"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}, "tool_choice.name='g'"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, "tool_choice.name=''"),
        ({"tools": [TOOL, {"type": "web_search_20250305", "name": "w"}]}, "tools[1].type='web_search_20250305'"),
        ({"tools": [{"type": "mcp_toolset"}]}, "tools[0].type='mcp_toolset'"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema: is missing"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name: is missing"),
        ({"tools": [{**TOOL, "defer_loading": True}]}, "tools[0].defer_loading"),
        ({"tools": [{**TOOL, "allowed_callers": ["code_execution_20250825"]}]}, "tools[0].allowed_callers"),
        ({"output_config": {"format": FORM}, "output_format": FORM}, "output_format: is the older name"),
        ({"output_config": {"task_budget": {"total": 1}}}, "output_config.task_budget: is not supported"),
        ({"container": "c"}, "container: is not supported"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers: is not supported"),
        ({"inference_geo": "us"}, "inference_geo: is not supported"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management: is not"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(fields, begins):
    with pytest.raises(ApiError) as refused:
        chat_of(**fields)
    assert refused.value.message.startswith(begins)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "fields",
    [{"thinking": {"type": "between_tools"}}, {"tool_choice": {"type": "some"}}, {"max_tokens": "5"}, {"system": 5},
     {"output_config": {"effort": "none"}}, {"output_format": {"type": "text"}}, {"tools": [{"name": 1}]}],
)  # fmt: skip
def test_types_are_strict(fields):
    with pytest.raises(msgspec.ValidationError):
        chat_of(**fields)


def test_a_count_needs_no_max_tokens_and_makes_the_same_prompt():
    fields = {"messages": MESSAGES, "tools": [TOOL], "thinking": {"type": "enabled", "budget_tokens": 9000}}
    counted = to_prompt(msgspec.convert(fields, CountTokensRequest))
    asked = chat_of(**fields, max_tokens=9999)
    for name in ("messages", "tools", "tool_choice", "chat_template_kwargs", "add_generation_prompt"):
        assert getattr(counted, name) == getattr(asked, name)
