"""The parts an AsyncLLM is made of when it starts.

Owns: which link the options ask for, loading both halves of a model side by side.
Does not own: the order of start and end (async_llm.py), the halves themselves.
"""

from __future__ import annotations

import asyncio
import socket

from octavo.base.clock import Clock
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.engine.front.async_options import AsyncOptions
from octavo.engine.front.link import EngineLink, LinkListener
from octavo.engine.front.remote import AttachedLink, ProcessLink
from octavo.engine.front.thread_link import ThreadLink
from octavo.engine.grammar_check.checker import GrammarChecker
from octavo.engine.input.front_parts import (
    FrontParts,
    load_front_parts,
    make_grammar_backend,
    make_inputs,
    open_model,
)
from octavo.engine.input.preparation import Preparation
from octavo.engine.input.prompt_pool import BoundedTokenizer, PromptPool
from octavo.engine.input.queue_count import QueueCount


def make_link(config: EngineConfig, options: AsyncOptions, listener: LinkListener) -> EngineLink:
    """To a thread, to the launcher's engine, or to a process of our own."""
    if options.in_process:
        return ThreadLink(config, listener)
    if options.launcher_fd is not None:
        end = socket.socket(fileno=options.launcher_fd)
        return AttachedLink(end, listener, client_idx=options.client_idx)
    return ProcessLink(
        config, listener, client_idx=options.client_idx, policy=options.restart_policy, spawned=options.spawned_engine
    )


async def start_both_halves(link: EngineLink, config: EngineConfig) -> FrontParts:
    """The engine loads its weights while this process loads the tokenizer. Raises what either raises."""
    engine = asyncio.create_task(link.start())
    parts = asyncio.create_task(asyncio.to_thread(_load_parts, config))
    try:
        done, _ = await asyncio.wait((engine, parts), return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    except BaseException:
        engine.cancel()
        await asyncio.gather(engine, parts, return_exceptions=True)
        raise
    return parts.result()


def _load_parts(config: EngineConfig) -> FrontParts:
    with open_model(config) as checkpoint:
        parts = load_front_parts(config, checkpoint)
    if parts.tokenizer is not None:
        parts.tokenizer.max_token_bytes  # noqa: B018 - computed here, in the shadow of the weights
    return parts


def make_preparation(
    parts: FrontParts,
    resolved: ResolvedConfig,
    options: AsyncOptions,
    pool: PromptPool,
    pending: QueueCount,
    clock: Clock,
) -> Preparation:
    """The gate for prompts, within the limits that the engine found."""
    tokenizer = parts.tokenizer
    bounded = None
    if tokenizer is not None:
        longest = resolved.model.max_model_len
        bounded = BoundedTokenizer(tokenizer, max_model_len=longest, max_token_bytes=tokenizer.max_token_bytes)
    # In a process of its own an engine is not to wait for a check, nor is this event loop.
    checker = None if options.in_process or tokenizer is None else GrammarChecker(resolved.options)
    backend = make_grammar_backend(lambda: parts) if checker is None else None
    inputs = make_inputs(parts, resolved, bounded, grammars=backend)
    return Preparation(inputs, checker, tokenizer, pool, pending, clock, options)
