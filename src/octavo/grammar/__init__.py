"""Grammars: which tokens may come next in a text that must have a form.

Owns: checking and compiling constraints, matchers and their masks.
Does not own: what a request says (proto/structured.py), when a text is constrained (engine, runner).
"""

from __future__ import annotations

from collections.abc import Sequence

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.grammar.interface import CompiledGrammar, GrammarBackend, Matcher

__all__ = ["CompiledGrammar", "GrammarBackend", "Matcher", "make_backend"]

BACKENDS = ("auto", "guidance")


def make_backend(name: str, tokenizer_json: str, vocab_size: int, eos_token_ids: Sequence[int]) -> GrammarBackend:
    """The back end of that name for one tokenizer.

    tokenizer_json: the text of a tokenizer.json. vocab_size: the width of the logits. Raises ConfigError for a name
    that is not known, LoadError for a tokenizer that cannot be used. Cost: 0.3 to 1 s, during which no other thread runs.
    """
    if name not in BACKENDS:
        raise ConfigError([ConfigProblem("structured_outputs_backend", name, f"must be one of {', '.join(BACKENDS)}")])
    from octavo.grammar.llguidance_backend import LlguidanceBackend

    return LlguidanceBackend(tokenizer_json, vocab_size, eos_token_ids)
