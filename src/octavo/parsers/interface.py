"""The seams of this folder: a parser, a format of tool calls, a format of reasoning, a tool.

Owns: the protocols that built-in formats and those of other packages (entry points) satisfy.
Does not own: any format.
Invariants of every parser: the events of any two ways to cut one text into pieces amount to the same (`fold`); time is
linear in the text; what is held back is bounded (`cursor.MAX_HELD_CHARS`); no text raises an error; of text that turns
out not to be a call, not a character is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from octavo.parsers.events import Event
from octavo.proto.structured import StructuredOutputsParams


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool of a request. `parameters`: the JSON schema of its arguments; None: it takes none."""

    name: str
    parameters: Mapping[str, Any] | None = None
    strict: bool = False


class OutputParser(Protocol):
    """Reads one text, piece by piece. One parser a choice."""

    def feed(self, text: str) -> list[Event]:
        """What this piece adds."""
        ...

    def finish(self) -> list[Event]:
        """The text has ended: what was held back. Nothing may be fed after it; a second call gives nothing."""
        ...


class ToolFormat(Protocol):
    """How models of a family write tool calls."""

    @property
    def name(self) -> str: ...

    @property
    def begin_markers(self) -> tuple[str, ...]:
        """Texts with which calls begin; empty where a call has no marker of its own."""
        ...

    @property
    def needs_special_tokens(self) -> bool:
        """Markers may be special tokens of the vocabulary: decode with skip_special_tokens off."""
        ...

    @property
    def forced_parser(self) -> str:
        """The name of the format to parse with where the output is constrained to calls (required, named)."""
        ...

    def make_parser(self, tools: Sequence[ToolSpec]) -> OutputParser: ...

    def is_used_by(self, chat_template: str) -> bool:
        """The template teaches this format."""
        ...

    def constraint(
        self, tools: Sequence[ToolSpec], *, required: bool, parallel: bool, chat_template: str = ""
    ) -> StructuredOutputsParams | None:
        """What makes each output valid. required: the whole output is one or more calls (one unless parallel).

        Otherwise text is free until a call begins, which is then constrained; None: this format cannot do that.
        """
        ...


class ReasoningFormat(Protocol):
    """How models of a family write what they think."""

    @property
    def name(self) -> str: ...

    @property
    def begin_marker(self) -> str: ...

    @property
    def end_marker(self) -> str: ...

    @property
    def needs_special_tokens(self) -> bool: ...

    def make_parser(self, *, starts_in_reasoning: bool) -> OutputParser:
        """A parser whose Content is everything that was not thought, unread."""
        ...

    def starts_in_reasoning(self, prompt: str) -> bool:
        """The answer to this rendered prompt begins inside reasoning."""
        ...

    def is_used_by(self, chat_template: str) -> bool: ...
