"""From the fields of a chat request to messages, tools, and how they are rendered: shared with /tokenize.

Owns: variables and template of a request, what excludes what.   Does not own: messages (messages.py), tools (tools.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from octavo.engine.input.prompts import ChatOptions
from octavo.server.api.chat_types import ChatFields
from octavo.server.errors import ApiError, invalid_value
from octavo.server.messages import read_messages, without_developers
from octavo.server.service import Service
from octavo.server.tools import ToolUse, read_tools

T = TypeVar("T")

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_RESERVED = frozenset(
    {"chat_template", "messages", "tools", "tokenize", "add_generation_prompt", "continue_final_message"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Checked, ready for the template."""

    messages: list[dict[str, Any]]
    options: ChatOptions
    tools: ToolUse

    @property
    def continued(self) -> str:
        """The text that is gone on with; "" if a new message begins."""
        return self.messages[-1]["content"] if self.options.continue_final_message else ""


async def read_apart(request: ChatFields, service: Service, read: Callable[[], T]) -> T:
    """What `read` makes of a request; on another thread where tools or calls make that long. Raises what it raises."""
    if not request.tools and not any(message.get("tool_calls") for message in request.messages):
        return read()
    service.admission.check(num_requests=0, num_tokens=0)
    return await (await service.engine.preparation()).run(read)


def read_conversation(request: ChatFields, service: Service) -> Conversation:
    """Messages, tools and how to render them. Raises ApiError."""
    config = service.config
    tools = read_tools(request, service.tool_limits)
    messages = read_messages(request.messages, config.max_messages)
    used = request.chat_template or service.chat_templates[bool(tools.shown)]
    if "developer" not in used:
        messages = without_developers(messages)
    for name in ("mm_processor_kwargs", "media_io_kwargs"):
        if getattr(request, name):
            raise ApiError(400, "unsupported_feature", f"{name}: this model reads text only", param=name)
    template = request.chat_template
    if template is not None and not config.trust_request_chat_template:
        raise invalid_value("chat_template: templates of requests are not accepted here", "chat_template")
    continues = bool(request.continue_final_message)
    adds = not continues if request.add_generation_prompt is None else request.add_generation_prompt
    if continues and adds:
        raise invalid_value(
            "continue_final_message: excludes add_generation_prompt; set one of them to false", "continue_final_message"
        )
    options = ChatOptions(
        chat_template=template,
        add_generation_prompt=adds,
        continue_final_message=continues,
        tools=tools.shown,
        template_kwargs=_read_variables(request, service) or None,
        control_texts=service.control_texts,
    )
    return Conversation(messages=messages, options=options, tools=tools)


def _read_variables(request: ChatFields, service: Service) -> dict[str, Any]:
    """For the template. The request's own win over the server's, and over what reasoning_effort stands for."""
    given = request.chat_template_kwargs or {}
    variables = {**service.config.default_chat_template_kwargs, **given}
    reserved = sorted(_RESERVED & variables.keys())
    if reserved:
        remedy = f"{reserved[0]} cannot be set here; it has a field of its own"
        raise invalid_value(f"chat_template_kwargs: {remedy}", "chat_template_kwargs")
    if request.documents is not None:
        variables["documents"] = request.documents
    effort = request.reasoning_effort
    if effort is not None:
        if effort not in EFFORTS:
            known = ", ".join(EFFORTS)
            raise invalid_value(f"reasoning_effort={effort[:40]!r}: must be one of {known}", "reasoning_effort")
        variables.setdefault("reasoning_effort", effort)
        if effort == "none":
            for name in ("enable_thinking", "thinking"):
                if name not in given:
                    variables[name] = False
    return variables
