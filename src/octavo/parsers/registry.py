"""Every known format by its name, and which one a chat template uses.

Owns: the names of the built-in formats; those of other packages, by entry points; the choice from a template; the
warning where a chosen format and the template disagree.
Does not own: any format.

A package adds formats by entry points that name an object with the shape of `ToolFormat` or `ReasoningFormat`:

    [project.entry-points."octavo.tool_parsers"]
    my_format = "my_package.my_module:MY_FORMAT"

    [project.entry-points."octavo.reasoning_parsers"]
    my_thoughts = "my_package.my_module:MY_THOUGHTS"

They are looked up when a name is asked for that is not built in; a built-in name cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, Final

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.parsers.hermes import HermesFormat
from octavo.parsers.interface import OutputParser, ReasoningFormat, ToolFormat, ToolSpec
from octavo.parsers.json_call import JsonCallFormat
from octavo.parsers.llama3_json import LlamaJsonFormat
from octavo.parsers.mistral import MistralFormat
from octavo.parsers.pipeline import FirstCallOnly, ParserRow, PlainParser
from octavo.parsers.pythonic import PythonicFormat
from octavo.parsers.qwen3_coder import QwenCoderFormat
from octavo.parsers.reasoning import DEEPSEEK_R1, QWEN3

TOOL_GROUP: Final = "octavo.tool_parsers"
REASONING_GROUP: Final = "octavo.reasoning_parsers"

_TOOL_FORMATS: Final[tuple[ToolFormat, ...]] = (
    QwenCoderFormat(),
    MistralFormat(),
    HermesFormat(),
    PythonicFormat(),
    LlamaJsonFormat(),
    JsonCallFormat(),
)
_REASONING_FORMATS: Final[tuple[ReasoningFormat, ...]] = (DEEPSEEK_R1, QWEN3)

TOOL_PARSERS: Final = {form.name: form for form in _TOOL_FORMATS}
"""In the order in which a template is asked."""
REASONING_PARSERS: Final = {form.name: form for form in _REASONING_FORMATS}
"""In the order in which a template is asked."""


def tool_format(name: str) -> ToolFormat:
    """The format of that name, built in or of another package. Raises ConfigError."""
    found = TOOL_PARSERS.get(name)
    return found or _load(TOOL_GROUP, name, "tool_call_parser", list(TOOL_PARSERS))


def reasoning_format(name: str) -> ReasoningFormat:
    """The format of that name, built in or of another package. Raises ConfigError."""
    found = REASONING_PARSERS.get(name)
    return found or _load(REASONING_GROUP, name, "reasoning_parser", list(REASONING_PARSERS))


def _load(group: str, name: str, option: str, built_in: list[str]) -> Any:
    added = entry_points(group=group)
    for point in added:
        if point.name == name:
            return point.load()
    known = ", ".join([*built_in, *sorted(point.name for point in added)])
    raise ConfigError([ConfigProblem(option, name, f"is not known; there are {known}")])


def find_tool_parser(chat_template: str) -> str | None:
    """The built-in format that this template teaches; None: it teaches none that is known."""
    return next((name for name, form in TOOL_PARSERS.items() if form.is_used_by(chat_template)), None)


def find_reasoning_parser(chat_template: str) -> str | None:
    """The built-in format of reasoning in this template; None: it shows none that is known."""
    return next((name for name, form in REASONING_PARSERS.items() if form.is_used_by(chat_template)), None)


def mismatch(parser: str, chat_template: str) -> str | None:
    """A warning if this tool format is not the one that the template teaches; None: they agree."""
    if tool_format(parser).is_used_by(chat_template):
        return None
    found = find_tool_parser(chat_template)
    if found is None:
        return (
            f"tool_call_parser={parser!r}: the chat template shows no known format of tool calls; the model may "
            "never have learnt to call tools, and what it writes may not be read as calls"
        )
    return (
        f"tool_call_parser={parser!r}: the chat template teaches {found!r}; calls would stay in the content. "
        f"Leave tool_call_parser out, or set it to {found!r}"
    )


def make_parser(
    *,
    tool: str | None,
    reasoning: str | None,
    tools: Sequence[ToolSpec] = (),
    starts_in_reasoning: bool = False,
    parallel: bool = True,
) -> OutputParser:
    """A parser for one text: reasoning first, tool calls only in the content. None: that is not looked for.

    starts_in_reasoning: from `ReasoningFormat.starts_in_reasoning` of the rendered prompt. parallel False keeps only
    the first call. Raises ConfigError for an unknown name.
    """
    parser: OutputParser = PlainParser()
    if tool is not None:
        parser = tool_format(tool).make_parser(tools)
        parser = parser if parallel else FirstCallOnly(parser)
    if reasoning is not None:
        first = reasoning_format(reasoning).make_parser(starts_in_reasoning=starts_in_reasoning)
        parser = ParserRow(first, parser)
    return parser
