"""A small real tokenizer for grammars: byte-level pairs learnt from JSON, so that tokens cross its punctuation."""

from __future__ import annotations

import functools
import json

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers

from octavo.grammar.llguidance_backend import LlguidanceBackend

EOS_TEXT, CALL, CALL_END = "<|end|>", "<tool_call>", "</tool_call>"
NUM_PADDING = 42
"""Logits beyond the vocabulary."""


@functools.cache
def make_tokenizer() -> tokenizers.Tokenizer:
    """About 600 tokens; three are special."""
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    texts = [
        json.dumps({"name": f"city{i}", "count": i, "tags": ["red", "green"], "ok": i % 2 == 0, "none": None}, **form)
        for i in range(50)
        for form in ({}, {"separators": (",", ":")}, {"indent": 2})
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    backend.train_from_iterator(texts, trainer)
    backend.add_tokens([AddedToken(EOS_TEXT, special=True), AddedToken(CALL), AddedToken(CALL_END)])
    return backend


def vocab_size() -> int:
    """Width of the logits: wider than the vocabulary, as in padded models, and no multiple of 32."""
    return make_tokenizer().get_vocab_size() + NUM_PADDING


def eos_id() -> int:
    return make_tokenizer().token_to_id(EOS_TEXT)


@functools.cache
def make_test_backend() -> LlguidanceBackend:
    return LlguidanceBackend(make_tokenizer().to_str(), vocab_size(), [eos_id()])


def encode(text: str) -> list[int]:
    return make_tokenizer().encode(text).ids
