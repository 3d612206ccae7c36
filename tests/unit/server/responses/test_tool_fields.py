import pytest

from octavo.server.api.chat_types import ChatCompletionRequest
from octavo.server.errors import ApiError
from octavo.server.responses.tool_fields import nest_tools
from octavo.server.tools import ToolLimits, read_tools

F = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
G = {"type": "function", "name": "g", "parameters": None, "strict": None}
NESTED_F = {"type": "function", "function": {name: F[name] for name in ("name", "description", "parameters", "strict")}}
NESTED_G = {"type": "function", "function": {"name": "g"}}
LIMITS = ToolLimits(max_tools=8, max_bytes=10_000, excludes_unused=False)


def test_functions_take_the_form_of_chat():
    assert nest_tools([F, G]) == [NESTED_F, NESTED_G]


@pytest.mark.parametrize("tools", [None, []])
def test_no_tools_are_none(tools):
    assert nest_tools(tools) is None


@pytest.mark.parametrize("tool", [{"type": "web_search"}, {"name": "f"}, {"type": ["function"], "name": "f"}])
def test_what_is_no_function_is_refused_by_its_place(tool):
    with pytest.raises(ApiError, match=r"^tools\[1\]") as refused:
        nest_tools([F, tool])
    assert (refused.value.status, refused.value.param) == (400, "tools")


@pytest.mark.parametrize(
    ("choice", "kind", "names"),
    [
        ({"type": "function", "name": "g"}, "named", ["g"]),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}, "auto", ["g"]),
        ("required", "required", ["f", "g"]),
    ],
)
def test_the_flat_forms_of_choices_are_understood_beside_them(choice, kind, names):
    use = read_tools(ChatCompletionRequest(messages=[], tools=nest_tools([F, G]), tool_choice=choice), LIMITS)
    assert (use.choice, [function["name"] for function in use.callable]) == (kind, names)
