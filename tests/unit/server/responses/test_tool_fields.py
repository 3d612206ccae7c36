import pytest

from octavo.server.errors import ApiError
from octavo.server.responses.tool_fields import read_tool_fields

F = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
G = {"type": "function", "name": "g", "parameters": None, "strict": None}
NESTED_F = {"type": "function", "function": {name: F[name] for name in ("name", "description", "parameters", "strict")}}
NESTED_G = {"type": "function", "function": {"name": "g"}}


def allowed(mode, *names):
    tools = [{"type": "function", "name": name} for name in names]
    return {"type": "allowed_tools", "mode": mode, "tools": tools}


def test_functions_take_the_form_of_chat():
    assert read_tool_fields([F, G], "required") == ([NESTED_F, NESTED_G], "required")


@pytest.mark.parametrize("tools", [None, []])
def test_no_tools_are_none(tools):
    assert read_tool_fields(tools, None) == (None, None)


def test_a_name_is_passed_on():
    named = {"type": "function", "name": "g"}
    assert read_tool_fields([F, G], named)[1] == named


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_only_allowed_tools_are_left_in_the_order_of_tools(mode):
    assert read_tool_fields([F, G], allowed(mode, "g")) == ([NESTED_G], mode)
    assert read_tool_fields([F, G], allowed(mode, "g", "f"))[0] == [NESTED_F, NESTED_G]


@pytest.mark.parametrize(
    ("tools", "choice", "param"),
    [
        ([F, {"type": "web_search"}], None, "tools"),
        ([{"name": "f"}], None, "tools"),
        ([F], {"type": "web_search"}, "tool_choice"),
        ([F], {"type": "custom", "name": "f"}, "tool_choice"),
        ([F], allowed("none", "f"), "tool_choice"),
        ([F], allowed("auto"), "tool_choice"),
        ([F], allowed("auto", "g"), "tool_choice"),
        ([F], allowed("auto", "f") | {"tools": ["f"]}, "tool_choice"),
        ([F], allowed("auto", "f") | {"tools": [{"type": "function", "name": ["f"]}]}, "tool_choice"),
        ([F, {"type": "function", "name": ["g"]}], allowed("auto", "g"), "tool_choice"),
        (None, allowed("auto", "f"), "tool_choice"),
    ],
)
def test_what_is_no_function_is_refused(tools, choice, param):
    with pytest.raises(ApiError) as refused:
        read_tool_fields(tools, choice)
    assert (refused.value.status, refused.value.param) == (400, param)
