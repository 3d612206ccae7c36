"""Typed, checked access to a mapping that came out of a file (GGUF metadata, config.json, ...).

Owns: the wording of "key k of file f is wrong".   Does not own: what the keys mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from octavo.base.errors import LoadError

T = TypeVar("T")

MAX_INT = 2**31 - 1


class Fields:
    """A read-only view of `values`; every complaint is a LoadError naming `source` and the key."""

    def __init__(self, values: Mapping[str, object], source: str) -> None:
        self.values = values
        self.source = source

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def error(self, key: str, problem: str) -> LoadError:
        """The error to raise about one key."""
        return LoadError(f"{self.source}: key {key!r} {problem}")

    def raw(self, key: str) -> object:
        """The value as it is, or None."""
        return self.values.get(key)

    def optional_integer(self, key: str, *, low: int = 1, high: int = MAX_INT) -> int | None:
        """An integer in [low, high], or None when absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"must be an integer, not {_show(value)}")
        if not low <= value <= high:
            raise self.error(key, f"= {_show(value)} is outside [{low}, {high}]")
        return value

    def integer(self, key: str, *, low: int = 1, high: int = MAX_INT) -> int:
        """An integer in [low, high]; absent is an error."""
        return self._required(key, self.optional_integer(key, low=low, high=high))

    def optional_number(self, key: str, *, low: float = -math.inf, high: float = math.inf) -> float | None:
        """A finite number in [low, high], or None when absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, f"must be a number, not {_show(value)}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or not low <= number <= high:
            raise self.error(key, f"= {_show(value)} must be a finite number in [{low}, {high}]")
        return number

    def number(self, key: str, *, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number in [low, high]; absent is an error."""
        return self._required(key, self.optional_number(key, low=low, high=high))

    def flag(self, key: str, default: bool) -> bool:
        """A boolean, or `default` when absent or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {_show(value)}")
        return value

    def optional_text(self, key: str) -> str | None:
        """A string, or None when absent or null."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, f"must be a string, not {_show(value)}")
        return value

    def text(self, key: str) -> str:
        """A string; absent is an error."""
        return self._required(key, self.optional_text(key))

    def optional_section(self, key: str) -> Fields | None:
        """A nested object, or None when absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(key, f"must be an object, not {_show(value)}")
        return Fields(value, f"{self.source}: {key}")

    def _required(self, key: str, value: T | None) -> T:
        if value is None:
            raise self.error(key, "is missing")
        return value


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
