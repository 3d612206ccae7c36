"""The forms a prompt may have, brought to one: token ids.

Owns: telling the forms apart, chat templates, tokenizing.   Does not own: whether the ids fit the model (validate.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, Protocol, TypedDict, cast

from octavo.base.errors import ConfigError, ConfigProblem, ValidationError
from octavo.engine.input.control_text import ControlTextGuard


class TextPrompt(TypedDict):
    """A text to continue. `cache_salt`: share cached prefixes only with requests of the same salt."""

    prompt: str
    cache_salt: NotRequired[str]


class TokensPrompt(TypedDict):
    """Token ids to continue; `prompt` is only reported back."""

    prompt_token_ids: list[int]
    prompt: NotRequired[str]
    cache_salt: NotRequired[str]


PromptType = str | list[int] | TextPrompt | TokensPrompt
ChatMessage = Mapping[str, Any]
"""{"role": ..., "content": ...} and what else the model's template reads."""

_PROMPT_KEYS = {"prompt", "prompt_token_ids", "cache_salt"}
_PROMPT_FORMS = 'pass a text, a list of token ids, {"prompt": text} or {"prompt_token_ids": ids}'
_TEMPLATE_VARIABLES = frozenset(
    {"messages", "tools", "add_generation_prompt", "continue_final_message", "chat_template", "tokenize", "self"}
)
"""Have parameters of their own, or no meaning: not among the further variables of a template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt, ready for validation."""

    token_ids: list[int]
    text: str | None = None
    cache_salt: str | None = None


class PromptTokenizer(Protocol):
    """What prompts need of a tokenizer."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]: ...

    def apply_chat_template(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        chat_template: str | None = None,
        **kwargs: Any,
    ) -> str | list[int]: ...


def list_prompts(prompts: PromptType | Sequence[PromptType]) -> list[PromptType]:
    """One prompt of any form, or a sequence of them, as a list. An empty list holds no prompts.

    Raises ValidationError for what is neither.
    """
    is_ids = isinstance(prompts, list | tuple) and bool(prompts) and isinstance(prompts[0], int)
    if is_ids or isinstance(prompts, str | Mapping):
        return [cast(PromptType, prompts)]
    if isinstance(prompts, bytes) or not isinstance(prompts, Iterable):
        raise ValidationError(
            f"prompts of type {type(prompts).__name__}: {_PROMPT_FORMS}, or a list of these",
            parameter="prompts",
            value=prompts,
        )
    return list(cast(Iterable[PromptType], prompts))


def list_conversations(
    messages: Sequence[ChatMessage] | Sequence[Sequence[ChatMessage]],
) -> list[Sequence[ChatMessage]]:
    """One conversation, or a sequence of them, as a list. Raises ValidationError."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise ValidationError(
            f"messages of type {type(messages).__name__}: must be a list of messages, or a list of such lists",
            parameter="messages",
            value=messages,
        )
    is_one = bool(messages) and isinstance(messages[0], Mapping)
    return [cast(Sequence[ChatMessage], messages)] if is_one else list(cast(Sequence[Sequence[ChatMessage]], messages))


def read_prompt(prompt: PromptType, tokenizer: PromptTokenizer | None, *, add_special_tokens: bool = True) -> Prompt:
    """Bring any form to token ids; text gets the tokenizer's special tokens if so asked. Raises ValidationError."""
    if isinstance(prompt, str):
        return Prompt(token_ids=_encode(prompt, tokenizer, add_special_tokens), text=prompt)
    if isinstance(prompt, Mapping):
        return _read_mapping(prompt, tokenizer, add_special_tokens)
    if isinstance(prompt, list | tuple):
        return Prompt(token_ids=_read_ids(prompt))
    raise ValidationError(
        f"prompt of type {type(prompt).__name__}: {_PROMPT_FORMS}",
        parameter="prompt",
        value=prompt,
    )


def _read_mapping(prompt: Mapping[str, Any], tokenizer: PromptTokenizer | None, add_special_tokens: bool) -> Prompt:
    unknown = sorted(map(str, set(prompt) - _PROMPT_KEYS))
    if unknown:
        raise ValidationError(
            f"prompt has unknown keys {unknown}: known are {sorted(_PROMPT_KEYS)}", parameter=unknown[0]
        )
    text, salt = prompt.get("prompt"), prompt.get("cache_salt")
    for name, value in (("prompt", text), ("cache_salt", salt)):
        if value is not None and not isinstance(value, str):
            raise ValidationError(f"{name}={value!r}: must be a text", parameter=name, value=value)
    if salt == "":
        raise ValidationError("cache_salt='': give a non-empty text, or leave it out", parameter="cache_salt", value="")
    if "prompt_token_ids" in prompt:
        return Prompt(token_ids=_read_ids(prompt["prompt_token_ids"]), text=text, cache_salt=salt)
    if text is None:
        raise ValidationError('prompt has neither "prompt" nor "prompt_token_ids"', parameter="prompt")
    return Prompt(token_ids=_encode(text, tokenizer, add_special_tokens), text=text, cache_salt=salt)


def _read_ids(ids: object) -> list[int]:
    if not isinstance(ids, list | tuple):
        raise ValidationError(
            f"prompt_token_ids of type {type(ids).__name__}: must be a list of ints", parameter="prompt_token_ids"
        )
    return list(ids)


def _encode(text: str, tokenizer: PromptTokenizer | None, add_special_tokens: bool) -> list[int]:
    if tokenizer is None:
        raise ValidationError(
            "the engine runs without a tokenizer (skip_tokenizer_init): pass prompt_token_ids", parameter="prompt"
        )
    return tokenizer.encode(text, add_special_tokens=add_special_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How a conversation becomes a prompt."""

    chat_template: str | None = None
    """In place of the model's."""
    add_generation_prompt: bool = True
    """End with the opening of an assistant's turn."""
    continue_final_message: bool = False
    """Leave the last message open, so that the model goes on with it."""
    tools: Sequence[Mapping[str, Any]] | None = None
    template_kwargs: Mapping[str, Any] | None = None
    """Further variables for the template."""
    control_texts: Sequence[str] = ()
    """Texts of control tokens that messages may not spell; there they are tokenized as ordinary text."""


def read_chat_template(source: str | None) -> str | None:
    """The `--chat-template` option: the path of a file, or the template itself. Raises ConfigError."""
    if source is None or "{" in source or "\n" in source:
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([ConfigProblem("chat_template", source, f"cannot be read ({error})")]) from None


def render_chat(
    messages: Sequence[ChatMessage],
    tokenizer: PromptTokenizer | None,
    options: ChatOptions,
    *,
    add_special_tokens: bool = False,
) -> Prompt:
    """Messages to token ids. The template writes its own special tokens, so none are added: no second BOS."""
    if tokenizer is None:
        raise ValidationError("chat needs a tokenizer; the engine was started with skip_tokenizer_init")
    chat = SealedChat(messages, options)
    text = tokenizer.apply_chat_template(
        chat.messages,
        tools=chat.tools,
        add_generation_prompt=options.add_generation_prompt,
        continue_final_message=options.continue_final_message,
        chat_template=options.chat_template,
        **chat.variables,
    )
    assert isinstance(text, str)
    return chat.tokenize(text, tokenizer, add_special_tokens=add_special_tokens)


class SealedChat:
    """A checked conversation on both sides of its template: what is rendered, and the tokens of the text it becomes."""

    def __init__(self, messages: Sequence[ChatMessage], options: ChatOptions) -> None:
        _check_options(options)
        _check_messages(messages)
        self._guard = ControlTextGuard(options.control_texts)
        self.messages: Sequence[ChatMessage] = self._guard.seal(messages)
        self.tools: Sequence[Mapping[str, Any]] | None = self._guard.seal(options.tools)
        self.variables: Mapping[str, Any] = self._guard.seal(options.template_kwargs or {})

    def tokenize(self, rendered: str, tokenizer: PromptTokenizer, *, add_special_tokens: bool) -> Prompt:
        """The prompt that the rendered text is."""
        pieces = self._guard.pieces(rendered)
        token_ids = tokenizer.encode(pieces[0], add_special_tokens=add_special_tokens)
        for piece in pieces[1:]:
            token_ids += tokenizer.encode(piece, add_special_tokens=False)
        return Prompt(token_ids=token_ids, text="".join(pieces))


def _check_options(options: ChatOptions) -> None:
    if options.add_generation_prompt and options.continue_final_message:
        raise ValidationError(
            "add_generation_prompt and continue_final_message exclude each other: set one of them to False",
            parameter="continue_final_message",
            value=True,
        )
    if not isinstance(options.chat_template, str | None):
        raise ValidationError(
            f"chat_template of type {type(options.chat_template).__name__}: must be the template's text",
            parameter="chat_template",
            value=options.chat_template,
        )
    variables = {} if options.template_kwargs is None else options.template_kwargs
    if not isinstance(variables, Mapping) or not all(isinstance(name, str) for name in variables):
        raise ValidationError(
            'chat_template_kwargs: must map names to values, such as {"enable_thinking": False}',
            parameter="chat_template_kwargs",
            value=variables,
        )
    taken = sorted(_TEMPLATE_VARIABLES.intersection(variables))
    if taken:
        raise ValidationError(
            f"chat_template_kwargs: {', '.join(taken)} cannot be set here, only by parameters of their own",
            parameter="chat_template_kwargs",
            value=taken,
        )


def _check_messages(messages: Sequence[ChatMessage]) -> None:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise ValidationError(
            f"a conversation of type {type(messages).__name__}: must be a list of messages",
            parameter="messages",
            value=messages,
        )
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ValidationError(
                f'messages[{index}]: must be a mapping with a role, such as {{"role": "user", "content": "Hello"}}',
                parameter="messages",
                value=message,
            )
