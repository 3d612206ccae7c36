"""Options of what is read out of a model's text, and of the form it must have: tools, reasoning, constraints.

Owns: names, defaults and one-line docs of the group `answers`.   Does not own: which parsers there are (parsers).
"""

# ruff: noqa: RUF009 - option() returns a dataclass field, not a value shared by instances

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from octavo.config.option import option

ToolStrictLevel = Literal["auto", "function", "parameter"]
ReasoningField = Literal["both", "reasoning", "reasoning_content"]

STRUCTURED_OUTPUTS_SWITCHES = ("disable_any_whitespace", "disable_additional_properties", "enable_in_reasoning")
OWN_BACKENDS = ("auto", "guidance")
"""The one back end, and the choice between one."""
FOREIGN_BACKENDS = ("xgrammar", "outlines", "lm-format-enforcer")
"""Others that vLLM knows. The name says how a promise is kept, not which: people's command lines go on working."""
STRUCTURED_OUTPUTS_BACKENDS = OWN_BACKENDS + FOREIGN_BACKENDS

_OURS = "Ours: vLLM has no such limit."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerConfig:
    """Tools and reasoning."""

    tool_call_parser: str = option(
        "auto",
        "How the model writes calls: hermes, llama3_json, mistral, pythonic, qwen3_coder, one of a plugin, or none; "
        "auto: as its chat template says.",
        kind="text",
        differs="Chosen by itself; a choice that the chat template does not bear out is a warning.",
    )
    enable_auto_tool_choice: bool = option(
        True,
        "Let the model choose whether to call tools (tool_choice auto).",
        kind="switch",
        differs="On, since the parser is found by itself; off in vLLM.",
    )
    tool_strict_level: ToolStrictLevel = option(
        "auto",
        "What a call that the model begins by itself must be: auto: of a tool with strict, as its schema says; "
        "function: of one of the tools; parameter: as the schemas of all tools say.",
        kind="choice",
        choices=("auto", "function", "parameter"),
    )
    max_tools: int = option(128, "Tools of a request.", kind="count", minimum=1, differs=_OURS)
    max_tool_bytes: int = option(
        1 << 20, "Definitions of a request's tools together.", kind="size", unit="bytes", minimum=1024, differs=_OURS
    )
    structured_outputs_config: Mapping[str, object] = option(
        {},
        'Defaults of constraints, as JSON: {"disable_any_whitespace": true}; also disable_additional_properties, '
        "enable_in_reasoning (the constraint holds from the first token) and backend (auto or guidance).",
        kind="json",
        differs="There is one back end, guidance. vLLM's other names (xgrammar, outlines, lm-format-enforcer) are "
        "taken for it with a warning, since any of them must keep the same constraint; an unknown name is refused.",
    )
    reasoning_parser: str = option(
        "auto",
        "How the model writes what it thinks: deepseek_r1, qwen3, one of a plugin, or none; auto: as its chat template "
        "says.",
        kind="text",
        differs="Chosen by itself; vLLM parses nothing by default.",
    )
    reasoning_field: ReasoningField = option(
        "both",
        "Field of messages that holds reasoning: reasoning, its older name reasoning_content, or both.",
        kind="choice",
        choices=("both", "reasoning", "reasoning_content"),
        differs="Ours: clients of either name go on working.",
    )
