"""What tests ask of matchers."""

from __future__ import annotations

import numpy as np
from fakes.grammar_tokenizer import encode, make_test_backend, make_tokenizer, vocab_size

from octavo.base.errors import GrammarError
from octavo.proto.structured import StructuredOutputsParams


def compiled(**constraint):
    backend = make_test_backend()
    return backend.compile(backend.prepare(StructuredOutputsParams(**constraint).spec))


def start(**constraint):
    return compiled(**constraint).start()


def mask_of(matcher) -> np.ndarray:
    """Ids that may come next."""
    mask = np.full((vocab_size() + 31) // 32, -1, np.int32)
    matcher.fill_mask(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))


def takes(grammar, text: str) -> bool:
    """True when `text` is a whole text of the grammar, token by token as the tokenizer cuts it."""
    matcher = grammar.start()
    try:
        matcher.accept(encode(text))
    except GrammarError:
        return False
    return matcher.is_accepting


def random_text(matcher, rng, *, max_tokens: int, short_after: int) -> str | None:
    """A text of tokens the masks admit, each as likely as another; None when it has no end within max_tokens.

    After `short_after` tokens it ends where it can, and takes what closes most.
    """
    ids: list[int] = []
    tokenizer = make_tokenizer()
    while len(ids) < max_tokens:
        if matcher.is_complete or (matcher.is_accepting and (len(ids) > short_after or rng.random() < 0.2)):
            return tokenizer.decode(ids, skip_special_tokens=False)
        allowed = [idx for idx in mask_of(matcher) if tokenizer.id_to_token(int(idx)) not in (None, "<|end|>")]
        if not allowed:
            assert matcher.is_complete, "a text that may not end has a next token"
            continue
        if len(ids) > short_after:
            closing = [idx for idx in allowed if tokenizer.id_to_token(int(idx)) in ('"', "}", "]", "0", '"}', "}}")]
            allowed = closing or allowed
        token_id = int(rng.choice(allowed))
        matcher.accept([token_id])
        ids.append(token_id)
    return None
