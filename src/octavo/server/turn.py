"""One turn of a conversation: what /v1/chat/completions, /v1/responses and /v1/messages share.

Owns: the way from a chat request to a prepared one, and from outputs to what the model said: text, reasoning, calls.
Does not own: how an API writes that (chat.py, chat_stream.py, ...), formats (turn_formats.py, parsers), running.
Invariant: an answer that is not streamed is the same events over one delta, so both say the same.

    turn = await prepare_turn(request, service, request_id=..., model=...)   # all checks; nothing runs yet
    async for update in follow_turn(service, turn): ...                      # one choice each; turn.meter counts
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from octavo.engine.grammar_check.turns import Asker
from octavo.engine.input.preparation import RequestTerms
from octavo.engine.input.processor import PreparedRequest
from octavo.outputs import CompletionOutput, RequestOutput
from octavo.parsers.events import CallBegun, Content, Event, Reasoning
from octavo.parsers.interface import OutputParser
from octavo.proto.structured import PreparedGrammar
from octavo.server.admission import CHARS_PER_TOKEN
from octavo.server.api.chat_types import ChatCompletionRequest
from octavo.server.api.logprobs import TokenNames
from octavo.server.api.params import build_sampling, check_common, check_logprobs
from octavo.server.api.usage import UsageMeter
from octavo.server.chat_conversation import Conversation, read_apart, read_conversation
from octavo.server.errors import invalid_value
from octavo.server.intervals import ChunkGate
from octavo.server.requests import as_prompt, cut, is_strict, truncation
from octavo.server.running import follow
from octavo.server.service import Service
from octavo.server.structured import behind_reasoning, of_constraint, read_constraint
from octavo.server.tools import ToolChoice
from octavo.server.turn_formats import OutputPlan
from octavo.server.turn_reasoning import (
    ReasoningCounter,
    ReasoningState,
    constraint_with_reasoning,
    counter_factory,
    find_state,
    fit_reasoning,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A checked request, ready to run once."""

    request: ChatCompletionRequest
    request_id: str
    model: str
    prepared: PreparedRequest
    role: str
    echoed: str
    """Text that comes before the answer; empty without echo."""
    names: TokenNames
    num_top: int | None
    """Of the best tokens at each position; None: all that were reported."""
    tool_choice: ToolChoice
    make_parser: Callable[[], OutputParser] | None
    """None: all that the model writes is text."""
    make_counter: Callable[[], ReasoningCounter] | None
    """None: there is no reasoning to be counted."""
    meter: UsageMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUpdate:
    """What is new of one choice."""

    index: int
    events: Sequence[Event]
    output: CompletionOutput
    """Tokens and logprobs since the last update; its text is what `events` were made of."""
    whole: RequestOutput
    """What `output` came with: prompt, metrics."""
    finish_reason: str | None = None
    """With the last update; "tool_calls" where the model stopped behind a call that it chose to make."""
    stop_reason: int | str | None = None


# ---- before ---------------------------------------------------------------------------------------------------------


async def prepare_turn(
    request: ChatCompletionRequest,
    service: Service,
    *,
    request_id: str,
    model: str,
    asker: Asker,
    cuts_max_tokens: bool = False,
) -> Turn:
    """Check, render, tokenize. Raises ApiError, and what the engine raises.

    cuts_max_tokens: max_tokens beyond the context ends there, and is no error.
    """
    limits = service.sampling_limits
    check_common(request, limits, num_prompts=1)
    num_logprobs = _num_logprobs(request)
    check_logprobs(num_logprobs, "top_logprobs", limits)

    def read() -> tuple[Conversation, OutputPlan]:
        talk = read_conversation(request, service)
        return talk, service.formats.plan(talk.tools, read_constraint(request))

    talk, plan = await read_apart(request, service, read)
    if request.thinking_token_budget not in (None, -1) and plan.reasoning is None:
        raise invalid_value("thinking_token_budget: this model does not reason", "thinking_token_budget")
    max_tokens = request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens
    terms = RequestTerms(
        request_id=request_id,
        priority=request.priority or 0,
        deadline_s=service.deadline_s,
        is_strict=not cuts_max_tokens and is_strict(max_tokens, service),
        asker=asker,
    )
    prepared = await _prepare(request, service, terms, talk, plan, num_logprobs)
    state = await _find_state(service, prepared, plan)
    reasoning, tokenizer = plan.reasoning, service.engine.model.tokenizer
    make_counter = None
    if reasoning is not None and tokenizer is not None and state is not ReasoningState.OVER:
        prepared = fit_reasoning(
            prepared,
            tokenizer,
            reasoning,
            state,
            request.thinking_token_budget,
            grammar=await _grammar_with_reasoning(service, prepared, plan, state, asker),
            constrains_reasoning=service.constrains_reasoning,
        )
        make_counter = counter_factory(tokenizer, reasoning, state)
    last = talk.messages[-1]
    role = service.config.response_role if talk.options.add_generation_prompt else last["role"]
    return Turn(
        request=request,
        request_id=request_id,
        model=model,
        prepared=prepared,
        role=role,
        echoed=last["content"] if request.echo and last["role"] == role else "",
        names=service.token_names(request.return_tokens_as_token_ids),
        num_top=None if request.top_logprobs == -1 or request.logprob_token_ids else (request.top_logprobs or 0),
        tool_choice=talk.tools.choice,
        make_parser=plan.parser_factory(state),
        make_counter=make_counter,
        meter=UsageMeter(reports_cached=service.config.enable_prompt_tokens_details),
    )


async def _grammar_with_reasoning(
    service: Service, prepared: PreparedRequest, plan: OutputPlan, state: ReasoningState, asker: Asker
) -> PreparedGrammar | None:
    """See constraint_with_reasoning."""
    if plan.reasoning is None or service.constrains_reasoning:
        return None
    with behind_reasoning(plan.constraint):
        changed = constraint_with_reasoning(prepared.sampling.structured_outputs, plan.reasoning, state)
        return None if changed is None else await (await service.engine.preparation()).prepare_grammar(changed, asker)


async def _find_state(service: Service, prepared: PreparedRequest, plan: OutputPlan) -> ReasoningState:
    if plan.reasoning is None:
        return ReasoningState.OVER
    text = prepared.prompt.text
    if text is None:
        text = await (await service.engine.preparation()).detokenize(prepared.prompt.token_ids)
    return find_state(text, plan.reasoning)


def _num_logprobs(request: ChatCompletionRequest) -> int | None:
    if not request.logprobs:
        if request.top_logprobs:
            raise invalid_value("top_logprobs: needs logprobs=true", "top_logprobs")
        return None
    return request.top_logprobs or 0


async def _prepare(
    request: ChatCompletionRequest,
    service: Service,
    terms: RequestTerms,
    talk: Conversation,
    plan: OutputPlan,
    num_logprobs: int | None,
) -> PreparedRequest:
    known = service.engine.model
    max_tokens = request.max_tokens if request.max_completion_tokens is None else request.max_completion_tokens
    params = build_sampling(
        request,
        known.defaults.sampling,
        max_tokens=max_tokens,
        cap=known.defaults.max_tokens,
        logprobs=num_logprobs,
        prompt_logprobs=request.prompt_logprobs,
        detokenize=known.tokenizer is not None,
        constraint=plan.constraint,
    )
    if plan.shows_special_tokens:
        params = params.clone(skip_special_tokens=False)
    guess = (sum(len(message["content"]) for message in talk.messages) + talk.tools.num_bytes) // CHARS_PER_TOKEN
    service.admission.check(num_requests=1, num_tokens=guess)
    num_kept = truncation(request, service, max_tokens)
    adds_special = bool(request.add_special_tokens)
    preparation = await service.engine.preparation()
    with of_constraint(plan.constraint):
        if num_kept is None:
            salt = request.cache_salt
            return await preparation.prepare_chat(
                talk.messages, params, terms, chat=talk.options, cache_salt=salt, add_special_tokens=adds_special
            )
        ids = await preparation.tokenize_chat(talk.messages, talk.options, add_special_tokens=adds_special)
        return await preparation.prepare(as_prompt(cut(ids, num_kept, request), request.cache_salt), params, terms)


# ---- running --------------------------------------------------------------------------------------------------------


async def follow_turn(service: Service, turn: Turn, *, interval: int = 1) -> AsyncGenerator[TurnUpdate, None]:
    """Updates as they come; each choice has one with a finish_reason, its last. Close it to abort.

    interval: tokens per update, but the first comes alone. Raises ApiError when the request fails.
    """
    readers = [_ChoiceReader(turn, interval) for _ in turn.prepared.sequences]
    async with contextlib.aclosing(follow(service.engine, [turn.prepared])) as outputs:
        async for _, output in outputs:
            turn.meter.add(0, output)
            for continuation in output.outputs:
                update = readers[continuation.index].read(continuation, output)
                if turn.make_counter is not None:
                    turn.meter.num_reasoning_tokens = sum(reader.num_reasoning_tokens for reader in readers)
                if update is not None:
                    yield update


@dataclass(slots=True)
class _ChoiceReader:
    """From the outputs of one choice to its updates."""

    turn: Turn
    interval: int
    _has_calls: bool = False
    _gate: ChunkGate = field(init=False)
    _parser: OutputParser | None = field(init=False)
    _counter: ReasoningCounter | None = field(init=False)

    def __post_init__(self) -> None:
        make_parser, make_counter = self.turn.make_parser, self.turn.make_counter
        self._gate = ChunkGate(self.interval)
        self._parser = make_parser() if make_parser is not None else None
        self._counter = make_counter() if make_counter is not None else None

    @property
    def num_reasoning_tokens(self) -> int:
        return 0 if self._counter is None else self._counter.num_tokens

    def read(self, continuation: CompletionOutput, whole: RequestOutput) -> TurnUpdate | None:
        """What is due now; None: nothing yet."""
        if self._counter is not None:
            self._counter.feed(continuation.token_ids)
        due = self._gate.pass_through(continuation)
        if due is None:
            return None
        return TurnUpdate(
            index=due.index,
            events=self._events(due),
            output=due,
            whole=whole,
            finish_reason=self._finish_reason(due),
            stop_reason=due.stop_reason,
        )

    def _events(self, due: CompletionOutput) -> list[Event]:
        if self._parser is None:
            return [Content(due.text)] if due.text else []
        events = self._parser.feed(due.text) if due.text else []
        if due.finished():
            events = [*events, *self._parser.finish()]
        self._has_calls = self._has_calls or any(isinstance(event, CallBegun) for event in events)
        if self.turn.request.include_reasoning is False:
            events = [event for event in events if not isinstance(event, Reasoning)]
        return events

    def _finish_reason(self, due: CompletionOutput) -> str | None:
        """As OpenAI and vLLM: a named tool ends with "stop", what was cut says how."""
        if due.finish_reason == "stop" and self._has_calls and self.turn.tool_choice != "named":
            return "tool_calls"
        return due.finish_reason
