import pytest

from octavo.server.api.chat_types import ChatFields
from octavo.server.errors import ApiError
from octavo.server.tools import ToolLimits, new_call_id, read_tools

USER = {"role": "user", "content": "hi"}
LIMITS = ToolLimits(max_tools=3, max_bytes=2000, excludes_unused=False)


def tool(name, **fields):
    return {"type": "function", "function": {"name": name, **fields}}


def read(limits=LIMITS, **fields):
    return read_tools(ChatFields(messages=[USER], **fields), limits)


def refusal(**fields):
    with pytest.raises(ApiError) as refused:
        read(**fields)
    assert refused.value.status == 400
    return refused.value


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [tool("a"), tool("a")],
        [tool("a b")],
        [tool("a\nb")],
        [tool("x" * 65)],
        [{"type": "web_search"}],
        [{"type": "function"}],
        [tool(f"t{i}") for i in range(4)],
        [tool("a", description="x" * 2000)],
        [tool("a", description=5)],
        [tool("a", parameters="object")],
        [tool("a", strict="yes")],
    ],
)
def test_bad_definitions_are_refused(tools):
    assert refusal(tools=tools, tool_choice="none").param == "tools"


class Function(dict):
    """A definition so deep that comparing it with another is work."""

    def __eq__(self, other):
        raise AssertionError("definitions are told apart by their names")

    __hash__ = None


@pytest.mark.parametrize(
    "choice", [None, tool("b"), {"type": "allowed_tools", "mode": "auto", "tools": [tool("a"), tool("b")]}]
)
def test_definitions_are_not_compared_with_each_other(choice):
    tools = [{"type": "function", "function": Function(name=name)} for name in "abc"]
    use = read(tools=tools, tool_choice=choice)
    assert len(use.shown) == (2 if choice and "tools" in choice else 3)


@pytest.mark.parametrize("choice", [None, "auto"])
def test_the_model_chooses_where_nobody_else_does(choice):
    use = read(tools=[tool("a"), tool("b")], tool_choice=choice)
    assert (use.choice, [f["name"] for f in use.callable], use.is_forced) == ("auto", ["a", "b"], False)
    assert use.shown == [tool("a"), tool("b")]


@pytest.mark.parametrize("choice", [tool("b"), {"type": "function", "name": "b"}])
def test_a_named_tool_is_the_only_one_that_is_called_and_all_are_shown(choice):
    use = read(tools=[tool("a"), tool("b")], tool_choice=choice)
    assert (use.choice, [f["name"] for f in use.callable], use.parallel) == ("named", ["b"], False)
    assert use.is_forced
    assert len(use.shown) == 2


def allowed(mode, *names):
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [tool(name) for name in names]}}


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_only_tools_that_are_allowed_are_shown_and_called_in_the_order_of_the_tools(mode):
    tools = [tool("a"), tool("b"), tool("c")]
    use = read(tools=tools, tool_choice=allowed(mode, "c", "a", "c"))
    assert (use.choice, [f["name"] for f in use.callable]) == (mode, ["a", "c"])
    assert use.shown == [tools[0], tools[2]]
    assert use.names == ["a", "b", "c"]
    assert use.parallel
    flat = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": "b"}]}
    assert [f["name"] for f in read(tools=tools, tool_choice=flat).callable] == ["b"]


@pytest.mark.parametrize(
    "choice",
    [
        allowed("none", "a"),
        allowed(None, "a"),
        allowed("auto"),
        allowed("required", "a", "x"),
        {"type": "allowed_tools"},
        {"type": "allowed_tools", "allowed_tools": []},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": ["a"]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": "a"}},
    ],
)
def test_tools_that_cannot_be_allowed_are_refused(choice):
    error = refusal(tools=[tool("a")], tool_choice=choice)
    assert error.param == "tool_choice"
    assert "allowed_tools" in str(error)


@pytest.mark.parametrize("choice", [tool("c"), "any", {}, {"type": "function"}, {"type": "function", "function": 5}])
def test_a_choice_that_is_none_of_the_tools_is_refused(choice):
    assert refusal(tools=[tool("a")], tool_choice=choice).param == "tool_choice"


def test_with_choice_none_tools_are_shown_unless_excluded_and_never_called():
    use = read(tools=[tool("a")], tool_choice="none")
    assert (use.shown, use.callable, use.choice) == ([tool("a")], (), "none")
    excluding = ToolLimits(max_tools=3, max_bytes=2000, excludes_unused=True)
    assert read(excluding, tools=[tool("a")], tool_choice="none").shown is None
    assert read(excluding, tools=[tool("a")]).shown == [tool("a")]


def test_a_choice_without_tools_asks_for_nothing_only_if_it_is_none_or_auto():
    for choice in (None, "none", "auto"):
        assert read(tool_choice=choice).callable == ()
    assert refusal(tool_choice="required").param == "tool_choice"


@pytest.mark.parametrize(("given", "parallel"), [(None, True), (True, True), (False, False)])
def test_calls_are_parallel_unless_said_otherwise(given, parallel):
    assert read(tools=[tool("a")], tool_choice="required", parallel_tool_calls=given).parallel is parallel


@pytest.mark.parametrize("name", ["functions", "function_call"])
def test_old_fields_are_named(name):
    assert refusal(**{name: "auto"}).param == name


def test_ids_of_calls_are_vllms_and_never_the_same():
    first, second = new_call_id(), new_call_id()
    assert first.startswith("chatcmpl-tool-")
    assert first != second
