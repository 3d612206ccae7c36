"""What each sampling parameter may be, and the one form it is kept in.

Owns: types, ranges, limits and normal forms of single fields, and the rules between fields.
Does not own: checks that need the model (`engine/input`), names that are known but not done (`sampling_names.py`).
Invariants: normalising is idempotent, so a decoded copy equals the original; no number that is kept is NaN or infinite.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Mapping
from functools import partial
from reprlib import Repr
from typing import NoReturn, Protocol

from octavo.base.errors import ValidationError

GREEDY_EPSILON = 1e-5
"""Temperatures below this mean greedy."""
MIN_TEMPERATURE = 0.01
"""Positive temperatures below this are raised to it."""
MAX_TEMPERATURE = 2.0
MAX_SEQUENCES = 16384
MAX_TOKEN_IDS = 1024
"""Entries of stop_token_ids and of logit_bias."""
MAX_ALLOWED_TOKEN_IDS = 1 << 18
"""Entries of allowed_token_ids: about the largest vocabulary."""
MAX_LOGPROB_TOKEN_IDS = 128
MAX_STOP_STRINGS = 16
MAX_STOP_STRING_BYTES = 256
MAX_BAD_WORDS = 128
MAX_BAD_WORD_BYTES = 1024
MAX_BAD_WORD_TOKENS = 1024
"""Over all forms of all bad words of a request."""
MAX_MARKER_TOKENS = 64
"""Of the texts that begin and end reasoning."""
MAX_LOGIT_BIAS = 100.0
"""Larger biases are clamped to it, smaller ones to its negative."""
MAX_INT32 = 2**31 - 1

Normaliser = Callable[[str, object], object]


class Checked(Protocol):
    """The fields that rules between fields look at."""

    @property
    def n(self) -> int: ...
    @property
    def is_greedy(self) -> bool: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def min_tokens(self) -> int: ...
    @property
    def stop_strings(self) -> list[str]: ...
    @property
    def detokenize(self) -> bool: ...


def refuse(name: str, value: object, remedy: str) -> NoReturn:
    """Raise ValidationError naming the parameter, its value (shortened) and the remedy."""
    raise ValidationError(f"{name}{_shown(value)}: {remedy}", parameter=name, value=value)


def remedy_of(error: ValidationError) -> str:
    """What `refuse` was told, or else all of the message: for who has another name for the value."""
    message = str(error)
    begin = f"{error.parameter}{_shown(error.value)}: "
    return message.removeprefix(begin if message.startswith(begin) else f"{error.parameter}: ")


def _shown(value: object) -> str:
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = 60
    return f"={short.repr(value)}"


# ---- one value ------------------------------------------------------------------------------------------------------


def as_float(name: str, value: object, *, low: float, high: float, open_low: bool = False) -> float:
    """A finite number in [low, high], or (low, high] with `open_low`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        refuse(name, value, "must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        refuse(name, value, "must be finite")
    if number < low or number > high or (open_low and number == low):
        border = "above" if open_low else "at least"
        refuse(name, value, f"must be {border} {low:g}" + ("" if high == math.inf else f" and at most {high:g}"))
    return number


def as_int(name: str, value: object, *, low: int, high: int) -> int:
    """A whole number in [low, high]. bool is not a number here."""
    if isinstance(value, bool):
        refuse(name, value, "must be a whole number, not true or false")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        refuse(name, value, "must be a whole number")
    if not low <= number <= high:
        refuse(name, value, f"must be from {low} to {high}")
    return number


def as_bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        refuse(name, value, "must be true or false")
    return value


def optional(check: Normaliser) -> Normaliser:
    """`check`, with None left as it is."""
    return lambda name, value: None if value is None else check(name, value)


def as_temperature(name: str, value: object) -> float:
    number = as_float(name, value, low=0.0, high=MAX_TEMPERATURE)
    if number < GREEDY_EPSILON:
        return 0.0
    return max(number, MIN_TEMPERATURE)


def as_repetition_penalty(name: str, value: object) -> float:
    """Positive, and such that neither it nor its inverse leaves float32's range."""
    return as_float(name, value, low=1e-6, high=1e6)


def as_top_k(name: str, value: object) -> int:
    """0 means all. What is larger than any vocabulary is cut to 32 bits."""
    number = as_int(name, value, low=-1, high=2**64 - 1)
    return min(max(number, 0), MAX_INT32)


def as_seed(name: str, value: object) -> int | None:
    number = as_int(name, value, low=-(2**63), high=2**64 - 1)
    return None if number == -1 else number


def as_logprobs(name: str, value: object) -> int | None:
    """True and False are the chat API's 1 and None."""
    if isinstance(value, bool):
        return 1 if value else None
    return as_int(name, value, low=-1, high=MAX_INT32)


# ---- lists ----------------------------------------------------------------------------------------------------------


def _as_list(name: str, value: object, limit: int) -> list[object]:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        refuse(name, value, "must be a list")
    if not hasattr(value, "__len__"):
        refuse(name, value, "must be a list, not an iterator")
    if len(value) > limit:
        refuse(name, value, f"has {len(value)} entries, at most {limit} are taken")
    return list(value)


def as_token_ids(name: str, value: object, *, limit: int, allow_empty: bool) -> list[int]:
    """Distinct token ids in the order given."""
    items = _as_list(name, value, limit)
    if not items and not allow_empty:
        refuse(name, value, "must not be empty; leave it out instead")
    return list(dict.fromkeys(as_int(f"{name}[{i}]", item, low=0, high=MAX_INT32) for i, item in enumerate(items)))


def _as_strings(name: str, value: object, *, limit: int, max_bytes: int) -> list[str]:
    strings: dict[str, None] = {}
    for index, item in enumerate(_as_list(name, value, limit)):
        if not isinstance(item, str):
            refuse(f"{name}[{index}]", item, "must be a string")
        if not item:
            refuse(f"{name}[{index}]", item, "must not be empty")
        if len(item.encode(errors="surrogatepass")) > max_bytes:
            refuse(f"{name}[{index}]", item, f"must be at most {max_bytes} bytes long")
        strings[item] = None
    return list(strings)


def as_stop(name: str, value: object) -> list[str]:
    """One string or a list of them; None is the empty list."""
    if value is None:
        return []
    items = [value] if isinstance(value, str) else value
    return _as_strings(name, items, limit=MAX_STOP_STRINGS, max_bytes=MAX_STOP_STRING_BYTES)


def as_bad_words(name: str, value: object) -> list[str]:
    return _as_strings(name, value, limit=MAX_BAD_WORDS, max_bytes=MAX_BAD_WORD_BYTES)


def as_bad_words_token_ids(name: str, value: object) -> list[list[int]] | None:
    """Token sequences, none empty; no sequence at all is None."""
    words: list[list[int]] = []
    for index, item in enumerate(_as_list(name, value, MAX_BAD_WORD_TOKENS)):
        tokens = _as_list(f"{name}[{index}]", item, MAX_BAD_WORD_TOKENS)
        if not tokens:
            refuse(f"{name}[{index}]", item, "must not be empty")
        words.append([as_int(f"{name}[{index}]", token, low=0, high=MAX_INT32) for token in tokens])
    num_tokens = sum(map(len, words))
    if num_tokens > MAX_BAD_WORD_TOKENS:
        refuse("bad_words", value, f"make {num_tokens} tokens, at most {MAX_BAD_WORD_TOKENS} are taken")
    return words or None


def as_logit_bias(name: str, value: object) -> dict[int, float] | None:
    """{token id: bias}; ids may be written as decimal strings, as JSON has to. Values are clamped to +-100."""
    if not isinstance(value, Mapping):
        refuse(name, value, "must be a mapping from token ids to biases")
    if len(value) > MAX_TOKEN_IDS:
        refuse(name, value, f"has {len(value)} entries, at most {MAX_TOKEN_IDS} are taken")
    biases: dict[int, float] = {}
    for key, bias in value.items():
        token = int(key) if isinstance(key, str) and len(key) < 20 and key.isascii() and key.isdigit() else key
        token = as_int(name, token, low=0, high=MAX_INT32)
        number = as_float(f"{name}[{token}]", bias, low=-math.inf, high=math.inf)
        biases[token] = min(max(number, -MAX_LOGIT_BIAS), MAX_LOGIT_BIAS)
    return biases or None


def as_marker(name: str, value: object) -> list[int] | None:
    """Token ids in their order, repeated ones too; no id at all is None."""
    items = _as_list(name, value, MAX_MARKER_TOKENS)
    return [as_int(f"{name}[{i}]", item, low=0, high=MAX_INT32) for i, item in enumerate(items)] or None


def as_budget(name: str, value: object) -> int | None:
    """-1 is no budget."""
    number = as_int(name, value, low=-1, high=MAX_INT32)
    return None if number == -1 else number


# ---- all fields -----------------------------------------------------------------------------------------------------

NORMALISERS: Mapping[str, Normaliser] = {
    "n": partial(as_int, low=1, high=MAX_SEQUENCES),
    "presence_penalty": partial(as_float, low=-2.0, high=2.0),
    "frequency_penalty": partial(as_float, low=-2.0, high=2.0),
    "repetition_penalty": as_repetition_penalty,
    "temperature": as_temperature,
    "top_p": partial(as_float, low=0.0, high=1.0, open_low=True),
    "top_k": as_top_k,
    "min_p": partial(as_float, low=0.0, high=1.0),
    "seed": optional(as_seed),
    "stop": as_stop,
    "stop_token_ids": optional(partial(as_token_ids, limit=MAX_TOKEN_IDS, allow_empty=True)),
    "bad_words": optional(as_bad_words),
    "include_stop_str_in_output": as_bool,
    "ignore_eos": as_bool,
    "max_tokens": optional(partial(as_int, low=1, high=MAX_INT32)),
    "min_tokens": partial(as_int, low=0, high=MAX_INT32),
    "logprobs": optional(as_logprobs),
    "prompt_logprobs": optional(as_logprobs),
    "logprob_token_ids": optional(partial(as_token_ids, limit=MAX_LOGPROB_TOKEN_IDS, allow_empty=False)),
    "detokenize": as_bool,
    "skip_special_tokens": as_bool,
    "spaces_between_special_tokens": as_bool,
    "logit_bias": optional(as_logit_bias),
    "allowed_token_ids": optional(partial(as_token_ids, limit=MAX_ALLOWED_TOKEN_IDS, allow_empty=False)),
    "skip_reading_prefix_cache": optional(as_bool),
    "bad_words_token_ids": optional(as_bad_words_token_ids),
    "thinking_token_budget": optional(as_budget),
    "structured_after": optional(as_marker),
    "thinking_start_token_ids": optional(as_marker),
    "thinking_end_token_ids": optional(as_marker),
}
"""Every field but output_kind and structured_outputs, which `sampling.py` brings into form."""


def check_together(params: Checked) -> None:
    """Rules between fields, once each is in its normal form."""
    if params.is_greedy and params.n > 1:
        refuse("n", params.n, "must be 1 with temperature 0: all n texts would be the same")
    if params.max_tokens is not None and params.min_tokens > params.max_tokens:
        refuse("min_tokens", params.min_tokens, f"must be at most max_tokens={params.max_tokens}")
    if params.stop_strings and not params.detokenize:
        refuse("stop", params.stop_strings, "stop strings need detokenize=True; or use stop_token_ids")
