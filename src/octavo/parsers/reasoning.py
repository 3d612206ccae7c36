"""Reasoning between <think> and </think>: deepseek_r1 and qwen3.

Where the answer starts inside reasoning (the prompt has opened it), all text up to the end marker is reasoning, and so
is all text where the marker never comes. Otherwise reasoning is what a begin marker opens that is the first thing in
the text but for blanks; markers later in the text are content. Blanks that touch a marker are dropped, at most
MAX_BLANK_CHARS in front of one; a text without markers is content as it is.

Owns: the two formats, that rule, where a prompt leaves the model.
Does not own: the effort and budget of reasoning.
"""

from __future__ import annotations

import re
from typing import Final

from octavo.parsers.cursor import BLANK, BLANKS, Finder, MalformedError, Steps
from octavo.parsers.interface import OutputParser
from octavo.parsers.machine import GrammarParser
from octavo.parsers.writer import TrailingBlanks

BEGIN: Final = "<think>"
END: Final = "</think>"
_END: Final = Finder(END)
_ANY: Final = re.compile(r"(?s:.)+")


class ReasoningParser(GrammarParser):
    """Reads reasoning, then content."""

    def __init__(self, *, starts_in_reasoning: bool) -> None:
        super().__init__()
        self._starts_in_reasoning = starts_in_reasoning
        self._blanks = TrailingBlanks()

    def _read(self) -> Steps[None]:
        cursor = self._cursor
        cursor.keep()
        if (yield from self._is_at_begin()):
            self._drop(BEGIN)
        elif self._starts_in_reasoning:
            self._think(cursor.take_kept().lstrip(BLANKS))
        else:
            self._writer.content(cursor.take_kept())
            yield from cursor.pass_on(_ANY, self._writer.content)
            return
        yield from cursor.skip(BLANK)
        if (yield from cursor.pass_until(_END, self._think)):
            self._blanks.drop()
            cursor.take(len(END))
            yield from cursor.skip(BLANK)
        else:
            self._writer.reasoning(self._blanks.flush())
        yield from cursor.pass_on(_ANY, self._writer.content)

    def _is_at_begin(self) -> Steps[bool]:
        try:
            yield from self._cursor.skip(BLANK)
            return bool((yield from self._cursor.looking_at(BEGIN)))
        except MalformedError:
            return False

    def _think(self, text: str) -> None:
        self._writer.reasoning(self._blanks.push(text))


class ThinkFormat:
    """Reasoning between think tags.

    starts_in_reasoning: what a prompt means that neither opens nor closes reasoning.
    """

    begin_marker = BEGIN
    end_marker = END
    needs_special_tokens = True

    def __init__(self, name: str, *, starts_in_reasoning: bool, template_marks: tuple[str, ...]) -> None:
        self.name = name
        self._starts_in_reasoning = starts_in_reasoning
        self._template_marks = template_marks

    def make_parser(self, *, starts_in_reasoning: bool) -> OutputParser:
        return ReasoningParser(starts_in_reasoning=starts_in_reasoning)

    def starts_in_reasoning(self, prompt: str) -> bool:
        """Decided by how the prompt ends: templates open reasoning with <think>, or close it to turn it off."""
        end = prompt[-4096:].rstrip(BLANKS)
        if end.endswith(BEGIN):
            return True
        return self._starts_in_reasoning and not end.endswith(END)

    def is_used_by(self, chat_template: str) -> bool:
        return all(mark in chat_template for mark in self._template_marks)


DEEPSEEK_R1: Final = ThinkFormat("deepseek_r1", starts_in_reasoning=True, template_marks=(END, "<｜Assistant｜>"))
QWEN3: Final = ThinkFormat("qwen3", starts_in_reasoning=False, template_marks=(BEGIN, END))
