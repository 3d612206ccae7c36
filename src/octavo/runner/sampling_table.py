"""Sampling constants of all rows: set when a sequence enters its row, read by every step it samples in.

Owns: one array a parameter, and the rare parts (masks, biases, bad words) prepared once a sequence.
Does not own: tokens (rows.py), the batch of one step (sampling.py).
Invariant: `is_special` is true exactly for the rows that have a `specials` entry; plain rows cost no Python at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from octavo.kernels.ops import FloatArray, IntArray
from octavo.proto.failure import Failure
from octavo.proto.plan import NewSequence
from octavo.proto.sampling import SamplingParams

Bias = tuple[IntArray, FloatArray]
"""Distinct ids, ascending, and the values added to their logits."""

NONE_WANTED = -1
"""In num_logprobs and num_prompt_logprobs: no logprobs at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialSampling:
    """What only some sequences ask for, prepared for use at every step."""

    has_penalties: bool
    biases: Mapping[int, float]
    """logit_bias, and -inf for bad words of one token."""
    early_bans: frozenset[int]
    """Tokens that would end the text, banned for the first min_tokens tokens."""
    min_tokens: int
    bias: Bias | None
    """`biases` as arrays."""
    early_bias: Bias | None
    """`biases` and `early_bans` as arrays."""
    bad_words: Mapping[int, tuple[tuple[tuple[int, ...], int], ...]]
    """Last token but one -> (tokens before, token that would complete the word), for words of two and more tokens."""
    max_bad_prefix: int
    allowed: IntArray | None
    logprob_token_ids: IntArray | None

    @property
    def bans_tokens(self) -> bool:
        """Some tokens cannot be taken whatever else allows them."""
        return bool(self.bad_words or self.early_bans or self.allowed is not None or -np.inf in self.biases.values())

    def bias_after(self, output_ids: IntArray) -> Bias | None:
        """What to add to the logits of the token that follows the output so far [N]."""
        num_output = len(output_ids)
        completed = self._completed_by(output_ids) if self.bad_words and num_output else ()
        if not completed:
            return self.early_bias if num_output < self.min_tokens else self.bias
        bans = set(completed) | (self.early_bans if num_output < self.min_tokens else set())
        return as_bias({**self.biases, **dict.fromkeys(bans, -np.inf)})

    def _completed_by(self, output_ids: IntArray) -> list[int]:
        """Tokens that would complete a bad word here."""
        words = self.bad_words.get(int(output_ids[-1]), ())
        if not words:
            return []
        tail = tuple(output_ids[-self.max_bad_prefix :].tolist())
        return [last for before, last in words if tail[-len(before) :] == before]


class SamplingTable:
    """Arrays [max_num_seqs], one a parameter of SampleBatch."""

    def __init__(self, *, max_num_seqs: int, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self.temperature: FloatArray = np.zeros(max_num_seqs, np.float32)
        self.top_k: IntArray = np.zeros(max_num_seqs, np.int32)
        self.top_p: FloatArray = np.ones(max_num_seqs, np.float32)
        self.min_p: FloatArray = np.zeros(max_num_seqs, np.float32)
        self.repetition_penalty: FloatArray = np.ones(max_num_seqs, np.float32)
        self.frequency_penalty: FloatArray = np.zeros(max_num_seqs, np.float32)
        self.presence_penalty: FloatArray = np.zeros(max_num_seqs, np.float32)
        self.seeds: npt.NDArray[np.uint64] = np.zeros(max_num_seqs, np.uint64)
        self.num_logprobs: IntArray = np.full(max_num_seqs, NONE_WANTED, np.int32)
        self.num_prompt_logprobs: IntArray = np.full(max_num_seqs, NONE_WANTED, np.int32)
        self.num_prompt_logprobs_known: IntArray = np.zeros(max_num_seqs, np.int32)
        """Prompt positions 1 .. so many need no logprobs any more."""
        self.is_special: npt.NDArray[np.bool_] = np.zeros(max_num_seqs, np.bool_)
        self.specials: dict[int, SpecialSampling] = {}

    def admit(self, new: NewSequence) -> Failure | None:
        """Set a row's constants. Returns what is wrong with them, None if nothing: the border lets no such thing in."""
        row, params = new.row, new.sampling
        self.temperature[row] = params.temperature
        self.top_k[row] = min(params.top_k, self._vocab_size)
        self.top_p[row] = params.top_p
        self.min_p[row] = params.min_p
        self.repetition_penalty[row] = params.repetition_penalty
        self.frequency_penalty[row] = params.frequency_penalty
        self.presence_penalty[row] = params.presence_penalty
        self.seeds[row] = new.seed & (2**64 - 1)
        self.num_logprobs[row] = self._count(params.logprobs)
        self.num_prompt_logprobs[row] = self._count(params.prompt_logprobs)
        self.num_prompt_logprobs_known[row] = new.num_prompt_logprobs_known
        special = prepare_special(params, new.eos_token_ids)
        self.is_special[row] = special is not None
        if special is None:
            self.specials.pop(row, None)
            return None
        self.specials[row] = special
        fault = self._fault_of(special)
        return None if fault is None else Failure("internal", fault)

    def bans_tokens(self, row: int) -> bool:
        """The parameters of a row keep some tokens from ever being taken."""
        special = self.specials.get(row)
        return special is not None and special.bans_tokens

    def _count(self, logprobs: int | None) -> int:
        """How many of the best tokens to report; -1 in the parameters is all of them."""
        if logprobs is None:
            return NONE_WANTED
        return self._vocab_size if logprobs < 0 else min(logprobs, self._vocab_size)

    def _fault_of(self, special: SpecialSampling) -> str | None:
        lists = {
            "logit_bias, bad_words or stop_token_ids": special.early_bias[0] if special.early_bias else None,
            "allowed_token_ids": special.allowed,
            "logprob_token_ids": special.logprob_token_ids,
        }
        for name, token_ids in lists.items():
            if token_ids is not None and (token_ids.min() < 0 or token_ids.max() >= self._vocab_size):
                return f"{name} hold an id outside the vocabulary of {self._vocab_size}"
        if any(last >= self._vocab_size for words in special.bad_words.values() for _, last in words):
            return f"bad_words hold an id outside the vocabulary of {self._vocab_size}"
        return None


def prepare_special(params: SamplingParams, eos_token_ids: tuple[int, ...]) -> SpecialSampling | None:
    """The rare parts of a sequence's parameters; None where it asks for none of them."""
    words = params.bad_words_token_ids or []
    biases = {**(params.logit_bias or {}), **{word[0]: -np.inf for word in words if len(word) == 1}}
    early_bans = frozenset(eos_token_ids) | params.all_stop_token_ids if params.min_tokens else frozenset()
    lists = (params.allowed_token_ids, params.logprob_token_ids)
    if not (params.has_penalties or biases or early_bans or words or any(ids is not None for ids in lists)):
        return None
    bad_words: dict[int, tuple[tuple[tuple[int, ...], int], ...]] = {}
    for *before, last in words:
        if before:
            bad_words[before[-1]] = (*bad_words.get(before[-1], ()), (tuple(before), last))
    return SpecialSampling(
        has_penalties=params.has_penalties,
        biases=biases,
        early_bans=early_bans,
        min_tokens=params.min_tokens,
        bias=as_bias(biases),
        early_bias=as_bias({**biases, **dict.fromkeys(early_bans, -np.inf)}),
        bad_words=bad_words,
        max_bad_prefix=max(map(len, words), default=1) - 1,
        allowed=as_ids(params.allowed_token_ids),
        logprob_token_ids=as_ids(params.logprob_token_ids, keep_order=True),
    )


def as_bias(values: Mapping[int, float]) -> Bias | None:
    """A mapping as arrays; None if it is empty."""
    if not values:
        return None
    ids = sorted(values)
    return np.array(ids, np.int32), np.array([values[token_id] for token_id in ids], np.float32)


def as_ids(token_ids: list[int] | None, *, keep_order: bool = False) -> IntArray | None:
    """A list of distinct ids as an array, ascending unless `keep_order`."""
    if token_ids is None:
        return None
    return np.array(token_ids if keep_order else sorted(token_ids), np.int32)
