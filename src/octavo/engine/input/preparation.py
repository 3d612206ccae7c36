"""From prompts to PreparedRequests, off the event loop and within bounds.

Owns: what runs on the pool's threads, the engine's names of requests, the count of what is in preparation.
Does not own: the checks (inputs.py), the bounds themselves (prompt_pool.py).
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from octavo.base.clock import Clock
from octavo.base.errors import ValidationError
from octavo.engine.front.async_options import AsyncOptions
from octavo.engine.grammar_check.checker import GrammarChecker
from octavo.engine.grammar_check.turns import SELF, Asker
from octavo.engine.input.processor import InputProcessor, PreparedRequest
from octavo.engine.input.prompt_pool import PromptPool
from octavo.engine.input.prompts import ChatMessage, ChatOptions, Prompt, PromptType, SealedChat
from octavo.engine.input.queue_count import QueueCount
from octavo.engine.template.messages import RenderJob
from octavo.engine.template.renderer import TemplateRenderer
from octavo.loading import Tokenizer
from octavo.proto.sampling import SamplingParams
from octavo.proto.structured import PreparedGrammar, StructuredOutputsParams

T = TypeVar("T")

BYTES_PER_TOKEN_ESTIMATE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTerms:
    """What a request asks for beside its prompt and its sampling."""

    request_id: str
    priority: int = 0
    deadline_s: float | None = None
    """Seconds from its arrival."""
    is_strict: bool = False
    """See fit_max_tokens."""
    asker: Asker = SELF
    """Among those who wait for a grammar to be checked."""


class Preparation:
    """One front end's. On one event loop."""

    def __init__(
        self,
        inputs: InputProcessor,
        grammars: GrammarChecker | None,
        tokenizer: Tokenizer | None,
        pool: PromptPool,
        pending: QueueCount,
        clock: Clock,
        options: AsyncOptions,
    ) -> None:
        """grammars: None: `inputs` prepares them itself."""
        self.inputs = inputs
        self._grammars = grammars
        self._tokenizer = tokenizer
        self._pool = pool
        self._pending = pending
        self._clock = clock
        self._options = options
        self._templates = TemplateRenderer()
        # What the engine calls requests is unique, whatever callers choose and whoever had this client_idx before.
        self._id_prefix = f"{options.client_idx}-{secrets.token_hex(3)}"
        self._ordinals = itertools.count()

    def close(self) -> None:
        """End the processes for templates and grammars, if there are any. Idempotent."""
        self._templates.close()
        if self._grammars is not None:
            self._grammars.close()

    async def prepare(
        self,
        prompt: PromptType,
        sampling: SamplingParams | None,
        terms: RequestTerms,
        *,
        add_special_tokens: bool = True,
    ) -> PreparedRequest:
        """Tokenize and check. Raises ValidationError; OverloadedError when too many prompts wait."""

        def read() -> Prompt:
            return self.inputs.read(prompt, add_special_tokens=add_special_tokens)

        return await self._prepare(read, _num_prompt_bytes(prompt), sampling, terms)

    async def prepare_chat(
        self,
        messages: Sequence[ChatMessage],
        sampling: SamplingParams | None,
        terms: RequestTerms,
        *,
        chat: ChatOptions | None = None,
        cache_salt: str | None = None,
        add_special_tokens: bool = False,
    ) -> PreparedRequest:
        """The same for a conversation. Raises ValidationError also for a template of the request's, unless trusted."""
        options = self._checked_chat_options(chat)
        num_bytes = _num_message_bytes(messages)
        render = await self._counted(
            self._start_rendering(messages, options, add_special_tokens=add_special_tokens), num_bytes
        )
        return await self._prepare(lambda: replace(render(), cache_salt=cache_salt), num_bytes, sampling, terms)

    async def tokenize(self, prompt: PromptType, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of any form of prompt, within the bounds of `prepare`."""
        return (await self._pool.run(lambda: self.inputs.read(prompt, add_special_tokens=add_special_tokens))).token_ids

    async def tokenize_chat(
        self, messages: Sequence[ChatMessage], chat: ChatOptions | None = None, *, add_special_tokens: bool = False
    ) -> list[int]:
        """Token ids of a conversation, within the bounds of `prepare_chat`."""
        options = self._checked_chat_options(chat)
        render = await self._start_rendering(messages, options, add_special_tokens=add_special_tokens)
        return (await self._pool.run(render)).token_ids

    async def _start_rendering(
        self, messages: Sequence[ChatMessage], options: ChatOptions, *, add_special_tokens: bool
    ) -> Callable[[], Prompt]:
        """What is left for a thread. A template of the request's is a stranger's code: it has run elsewhere."""
        template, tokenizer = options.chat_template, self._tokenizer
        if template is None or tokenizer is None or tokenizer.has_template(template):
            return lambda: self.inputs.render_chat(messages, options, add_special_tokens=add_special_tokens)
        chat = await self._pool.run(lambda: SealedChat(messages, options))
        text = await self._templates.render(
            RenderJob(
                template=template,
                messages=[dict(message) for message in chat.messages],
                tools=None if chat.tools is None else [dict(tool) for tool in chat.tools],
                add_generation_prompt=options.add_generation_prompt,
                continue_final_message=options.continue_final_message,
                variables=dict(chat.variables),
                special_tokens=dict(tokenizer.special_tokens),
            )
        )
        return lambda: self.inputs.tokenize_rendered(chat, text, add_special_tokens=add_special_tokens)

    async def run(self, work: Callable[[], T]) -> T:
        """Do what reads a request and may take long, on the threads of prompts. Raises what it raises, OverloadedError;
        ValidationError when it takes too long.
        """
        return await self._pool.run(work)

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        """The text of these ids, special tokens included. Raises ValidationError for an engine without tokenizer."""
        tokenizer = self._tokenizer
        if tokenizer is None:
            raise ValidationError("the engine runs without a tokenizer (skip_tokenizer_init)", parameter="tokens")
        return await self._pool.run(lambda: tokenizer.decode(token_ids, skip_special_tokens=False))

    def _checked_chat_options(self, chat: ChatOptions | None) -> ChatOptions:
        options = chat or ChatOptions()
        if options.chat_template is not None and not self._options.trust_request_chat_template:
            raise ValidationError(
                "chat_template: templates of requests are not accepted here; "
                "the operator may allow them with --trust-request-chat-template",
                parameter="chat_template",
            )
        return options

    async def _prepare(
        self, read: Callable[[], Prompt], num_bytes: int, sampling: SamplingParams | None, terms: RequestTerms
    ) -> PreparedRequest:
        arrival_s = self._clock.now_s()
        engine_id = f"{self._id_prefix}-{next(self._ordinals)}"

        def work() -> PreparedRequest:
            return self.inputs.prepare(
                read(),
                sampling,
                request_id=engine_id,
                arrival_s=arrival_s,
                priority=terms.priority,
                deadline_s=None if terms.deadline_s is None else arrival_s + terms.deadline_s,
                default_seed=secrets.randbits(64),
                is_strict=terms.is_strict,
                grammar=grammar,
            )

        grammar = await self._counted(self._prepare_grammar(sampling, terms.asker), num_bytes)
        prepared = await self._counted(self._pool.run(work), num_bytes)
        return replace(prepared, request_id=terms.request_id)

    async def prepare_grammar(self, constraint: StructuredOutputsParams, asker: Asker) -> PreparedGrammar:
        """Of a constraint that takes the place of one a request came with. Raises ValidationError."""
        sampling = SamplingParams(structured_outputs=constraint)
        grammar = await self._counted(self._prepare_grammar(sampling, asker), 0)
        if grammar is None:
            grammar = await self._counted(self._pool.run(lambda: self.inputs.prepare_grammar(constraint)), 0)
        return grammar

    async def _prepare_grammar(self, sampling: SamplingParams | None, asker: Asker) -> PreparedGrammar | None:
        """What is found in a process of its own; None: nothing is to be found there."""
        spec = None if self._grammars is None else self.inputs.constraint_of(sampling)
        return None if spec is None or self._grammars is None else await self._grammars.prepare(spec, asker)

    async def _counted(self, work: Awaitable[T], num_bytes: int) -> T:
        num_tokens = num_bytes // BYTES_PER_TOKEN_ESTIMATE
        self._pending.enter(num_tokens)
        try:
            return await work
        finally:
            self._pending.leave(num_tokens)


def _num_prompt_bytes(prompt: PromptType) -> int:
    """A guess that costs nothing, also for prompts that will turn out to be malformed."""
    value: object = prompt
    if isinstance(prompt, Mapping):
        value = prompt.get("prompt_token_ids") or prompt.get("prompt")
    if isinstance(value, str):
        return len(value)
    return BYTES_PER_TOKEN_ESTIMATE * len(value) if isinstance(value, list | tuple) else 0


def _num_message_bytes(messages: Sequence[ChatMessage]) -> int:
    contents = [message.get("content") for message in messages if isinstance(message, Mapping)]
    return sum(len(content) for content in contents if isinstance(content, str))
