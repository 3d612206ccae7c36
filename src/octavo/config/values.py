"""Read one raw value (a flag's text, a YAML scalar, a keyword argument) as an option's type, and check its range.

Raises ValueError whose text is the remedy; load.py adds which option and which value.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from octavo.base.units import parse_bytes, parse_count
from octavo.config.option import AUTO, Declaration, Kind, Option

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


def read_value(option: Option, raw: object) -> object:
    """`raw` as the option's value. Raises ValueError with the remedy."""
    declaration = option.declaration
    if isinstance(raw, os.PathLike):
        raw = os.fspath(raw)
    if isinstance(raw, str) and declaration.kind != "text":
        raw = raw.strip()
    spelled = str(raw)
    raw = declaration.aliases.get(spelled, raw)
    if isinstance(raw, str) and raw in declaration.refused:
        raise ValueError(declaration.refused[raw])
    if option.has_auto and isinstance(raw, str) and raw.lower() == AUTO:
        return AUTO
    return _READERS[declaration.kind](declaration, raw)


def describe_values(option: Option) -> str:
    """What may be given, for help and docs: "integer >= 1", "fcfs or priority"."""
    declaration = option.declaration
    if declaration.kind == "choice":
        words = [AUTO, *declaration.choices] if option.has_auto else list(declaration.choices)
        return " or ".join(words)
    names: dict[Kind, str] = {
        "text": "text",
        "names": "one or more names",
        "choice": "",
        "count": "integer",
        "size": "size",
        "fraction": "number",
        "switch": "yes or no",
        "json": "JSON object",
    }
    limits = _describe_limits(declaration)
    return " ".join(filter(None, [f"{AUTO} or" if option.has_auto else "", names[declaration.kind], limits]))


def _describe_limits(declaration: Declaration) -> str:
    low, high = declaration.minimum, declaration.maximum
    parts = []
    if low is not None and high is not None:
        parts.append(f"{low:,} .. {high:,}")
    elif low is not None:
        parts.append(f">= {low:,}")
    elif high is not None:
        parts.append(f"<= {high:,}")
    if declaration.multiple_of:
        parts.append(f"multiple of {declaration.multiple_of}")
    return ", ".join(parts)


def _check_range(declaration: Declaration, value: float) -> None:
    low, high, step = declaration.minimum, declaration.maximum, declaration.multiple_of
    too_low = low is not None and not value >= low
    too_high = high is not None and not value <= high
    uneven = step is not None and value % step != 0
    if too_low or too_high or uneven:
        unit = f" ({declaration.unit})" if declaration.unit else ""
        raise ValueError(f"must be {_describe_limits(declaration)}{unit}")


def _read_text(_: Declaration, raw: object) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError("must be a text that is not empty")
    return raw


def _read_names(_: Declaration, raw: object) -> tuple[str, ...]:
    """A list holds names as they are; a text holds them between blanks, or is a JSON list."""
    if isinstance(raw, str) and raw.startswith("["):
        raw = _parse_json(raw, "must be one or more names, or a JSON list of them")
    names = raw.split() if isinstance(raw, str) else raw
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise ValueError("must be one or more names")
    return tuple(names)


def _read_choice(declaration: Declaration, raw: object) -> str:
    if raw not in declaration.choices:
        raise ValueError(f"must be {' or '.join(declaration.choices)}")
    return str(raw)


def _read_integer(declaration: Declaration, raw: object, parse: Callable[[str], int]) -> int:
    if isinstance(raw, str):
        is_negative = raw.startswith("-") and raw[1:].isdigit()
        value = int(raw) if is_negative else parse(raw)
    elif isinstance(raw, float) and raw.is_integer():
        value = int(raw)
    elif isinstance(raw, int) and not isinstance(raw, bool):
        value = raw
    else:
        raise ValueError("must be an integer")
    _check_range(declaration, value)
    return value


def _read_count(declaration: Declaration, raw: object) -> int:
    return _read_integer(declaration, raw, parse_count)


def _read_size(declaration: Declaration, raw: object) -> int:
    return _read_integer(declaration, raw, parse_bytes)


def _read_fraction(declaration: Declaration, raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise ValueError("must be a number")
    try:
        value = float(raw)
    except ValueError:
        raise ValueError("must be a number") from None
    _check_range(declaration, value)
    return value


def _read_switch(_: Declaration, raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    word = str(raw).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("must be true or false")


def _parse_json(text: str, remedy: str) -> object:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{remedy}: {error}") from None


def _read_json(_: Declaration, raw: object) -> dict[str, object]:
    if isinstance(raw, str):
        raw = _parse_json(raw, "must be a JSON object")
    if not isinstance(raw, Mapping) or not all(isinstance(key, str) for key in raw):
        raise ValueError('must be a JSON object such as {"temperature": 0.5}')
    return dict(raw)


_READERS: dict[Kind, Callable[[Declaration, object], object]] = {
    "text": _read_text,
    "names": _read_names,
    "choice": _read_choice,
    "count": _read_count,
    "size": _read_size,
    "fraction": _read_fraction,
    "switch": _read_switch,
    "json": _read_json,
}
