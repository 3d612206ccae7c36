"""How a model writes calls and reasoning: chosen once per server, applied to each request.

Owns: which parsers a server uses, the warning where the operator's choice and the chat template disagree.
Does not own: the formats themselves (parsers), constraints of tools (tools_constraint.py), what requests ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.base.log import get_logger
from octavo.config.answer_options import AnswerConfig
from octavo.parsers.interface import OutputParser, ReasoningFormat, ToolFormat, ToolSpec
from octavo.parsers.registry import (
    find_reasoning_parser,
    find_tool_parser,
    make_parser,
    mismatch,
    reasoning_format,
    tool_format,
)
from octavo.server.errors import ApiError
from octavo.server.structured import Constraint, named
from octavo.server.tools import ToolUse
from octavo.server.tools_constraint import ConstraintMaker
from octavo.server.turn_reasoning import ReasoningState

logger = get_logger(__name__)

AUTO, NONE = "auto", "none"
FORCED_FORMAT = "hermes"
"""How forced calls are written by a model whose template has no form for them."""


def check_parser_names(options: AnswerConfig) -> None:
    """Raises ConfigError, with the names there are, for a parser that does not exist."""
    problems: list[ConfigProblem] = []
    for load, name in ((tool_format, options.tool_call_parser), (reasoning_format, options.reasoning_parser)):
        try:
            if name not in (AUTO, NONE):
                load(name)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormats:
    """Names of the parsers of a server; None: there is none."""

    tool: str | None
    reasoning: str | None
    takes_auto: bool
    strict_level: str
    tool_template: str
    """The chat template that shows tools; "" if there is none."""

    @classmethod
    def choose(cls, options: AnswerConfig, chat_template: str, tool_template: str) -> OutputFormats:
        """By the options, or else by the model's templates ("": none). Raises ConfigError."""
        check_parser_names(options)
        return cls(
            tool=_choose_tool(options.tool_call_parser, tool_template),
            reasoning=_choose_reasoning(options.reasoning_parser, chat_template),
            takes_auto=options.enable_auto_tool_choice,
            strict_level=options.tool_strict_level,
            tool_template=tool_template,
        )

    def plan(self, use: ToolUse, own: Constraint | None) -> OutputPlan:
        """What one request needs. Raises ApiError."""
        reasoning = reasoning_format(self.reasoning) if self.reasoning is not None else None
        if not use.callable:
            return OutputPlan(tool=None, reasoning=reasoning, tools=(), parallel=True, constraint=own)
        if use.choice == "auto" and (self.tool is None or not self.takes_auto):
            raise ApiError(400, "unsupported_feature", self._why_not_auto(), param="tool_choice")
        tool = tool_format(self.tool or FORCED_FORMAT)
        maker = ConstraintMaker(tool, self.tool_template, use)
        with named("tools"):
            if use.is_forced:
                constraint: Constraint | None = maker.forced(own)
            elif own is not None:
                constraint = maker.either(own)
            else:
                constraint = maker.begun(self.strict_level)
        if use.is_forced or own is not None:
            tool = tool_format(tool.forced_parser)
        return OutputPlan(
            tool=tool, reasoning=reasoning, tools=maker.specs, parallel=use.parallel, constraint=constraint
        )

    def _why_not_auto(self) -> str:
        if self.takes_auto:
            reason = "this model's chat template has no form for calls (--tool-call-parser NAME names one)"
        else:
            reason = "the server was started with --no-enable-auto-tool-choice"
        return f'tool_choice "auto": {reason}; use "required" or the name of a tool, which every model can'


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
    """How the text of one request is read, and what it must be."""

    tool: ToolFormat | None
    """None: there are no calls in it."""
    reasoning: ReasoningFormat | None
    tools: Sequence[ToolSpec]
    parallel: bool
    """Only then is more than one call passed on."""
    constraint: Constraint | None

    @property
    def shows_special_tokens(self) -> bool:
        """True: a parser needs the text of control tokens."""
        return any(part is not None and part.needs_special_tokens for part in (self.tool, self.reasoning))

    def parser_factory(self, state: ReasoningState) -> Callable[[], OutputParser] | None:
        """Makes the parser of one answer. None: all of it is text."""
        reasoning = self.reasoning.name if self.reasoning and state is not ReasoningState.OVER else None
        tool = self.tool.name if self.tool else None
        if reasoning is None and tool is None:
            return None
        return lambda: make_parser(
            tool=tool,
            reasoning=reasoning,
            tools=self.tools,
            starts_in_reasoning=state is ReasoningState.INSIDE,
            parallel=self.parallel,
        )


def _choose_tool(wanted: str, template: str) -> str | None:
    if wanted in (AUTO, NONE):
        return find_tool_parser(template) if wanted == AUTO else None
    warning = mismatch(wanted, template)
    if warning is not None:
        logger.warning("%s", warning)
    return wanted


def _choose_reasoning(wanted: str, template: str) -> str | None:
    if wanted in (AUTO, NONE):
        return find_reasoning_parser(template) if wanted == AUTO else None
    found = find_reasoning_parser(template)
    if found is not None and found != wanted:
        logger.warning("reasoning_parser=%r: the chat template looks like %r", wanted, found)
    return wanted
