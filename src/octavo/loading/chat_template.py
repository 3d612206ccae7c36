"""Messages -> prompt text, by the chat template of a model.

Owns: which of several templates is used, its variables, the cut for continuing a message.
Does not own: the sandbox (template.py), tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2

from octavo.base.errors import ValidationError
from octavo.loading.template import compile_template, render_template

DEFAULT = "default"
TOOL_USE = "tool_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateOptions:
    """What a template is rendered with, beside the messages."""

    tools: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = True
    """End with the opening of an assistant's turn."""
    continue_final_message: bool = False
    """End inside the last message; excludes add_generation_prompt."""
    chat_template: str | None = None
    """A template, or the name of one of the model's; None: the model's for this kind of conversation."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """Further ones, for this template."""


class ChatTemplate:
    """Templates by name ("default", "tool_use", ...) and the texts of the special tokens they may use."""

    def __init__(self, sources: Mapping[str, str], special_tokens: Mapping[str, str]) -> None:
        self.sources = dict(sources)
        self._special_tokens = dict(special_tokens)
        self._compiled: dict[str, jinja2.Template] = {}
        self._given: tuple[str, jinja2.Template] | None = None

    @property
    def default_source(self) -> str | None:
        """The template for ordinary conversations, if the model has one."""
        return self.sources.get(DEFAULT)

    @property
    def tool_source(self) -> str | None:
        """The template for conversations with tools."""
        return self.sources.get(TOOL_USE, self.default_source)

    def render(self, messages: Sequence[Mapping[str, Any]], options: TemplateOptions) -> str:
        """The text. Raises ValidationError."""
        if options.continue_final_message and options.add_generation_prompt:
            raise ValidationError(
                "continue_final_message: cannot be combined with add_generation_prompt; turn one of them off",
                parameter="continue_final_message",
                value=True,
            )
        template = self._choose(options.chat_template, has_tools=bool(options.tools))
        variables = {
            **self._special_tokens,
            **options.variables,
            "messages": messages,
            "tools": options.tools,
            "add_generation_prompt": options.add_generation_prompt,
        }
        text = render_template(template, variables)
        return _cut_after_final_message(text, messages) if options.continue_final_message else text

    def _choose(self, chat_template: str | None, *, has_tools: bool) -> jinja2.Template:
        if chat_template is not None and chat_template not in self.sources:
            return self._compile_given(chat_template)
        name = chat_template or (TOOL_USE if has_tools and TOOL_USE in self.sources else DEFAULT)
        if name not in self.sources:
            raise ValidationError(
                "chat_template: this model has none; pass chat_template, or use a prompt in place of messages",
                parameter="chat_template",
            )
        if name not in self._compiled:
            self._compiled[name] = compile_template(self.sources[name])
        return self._compiled[name]

    def _compile_given(self, source: str) -> jinja2.Template:
        """The last one is kept: an operator gives the same with every conversation."""
        if self._given is None or self._given[0] != source:
            self._given = (source, compile_template(source))
        return self._given[1]


def _cut_after_final_message(text: str, messages: Sequence[Mapping[str, Any]]) -> str:
    """End the prompt where the last message's content ends, so that the model goes on with it."""
    content: object = messages[-1].get("content") if messages else None
    if isinstance(content, list) and content:
        content = content[-1].get("text")
    kept = content.lstrip() if isinstance(content, str) else ""
    start = text.rfind(kept.rstrip())
    if not kept or start < 0:
        raise ValidationError(
            "continue_final_message: the chat template does not show the last message's text as it is",
            parameter="continue_final_message",
            value=True,
        )
    # Templates may strip the message: then the blanks at its end are not part of the prompt.
    return text[: start + (len(kept) if text.startswith(kept, start) else len(kept.rstrip()))]
