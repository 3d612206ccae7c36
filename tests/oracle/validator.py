"""What an independent validator says of a text: jsonschema, with checks of its own for formats it leaves alone."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

import jsonschema
from jsonschema import FormatChecker

_DURATION: Final = re.compile(r"P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)", re.ASCII)
_HOSTNAME: Final = re.compile(r"(?!.{254})[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}"
                              r"[A-Za-z0-9])?)*", re.ASCII)  # fmt: skip
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*", re.ASCII)


def find_errors(text: str, schema: dict[str, Any] | bool) -> list[str]:
    """What is wrong with a text that should be an instance of `schema`. Empty: nothing."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        return [f"no JSON: {error}"]
    dialect = schema.get("$schema", "") if isinstance(schema, dict) else ""
    kind = jsonschema.Draft7Validator if "draft-07" in dialect else jsonschema.Draft202012Validator
    exact = jsonschema.validators.extend(kind, {"multipleOf": _find_remainder})
    return [error.message for error in exact(schema, format_checker=make_format_checker()).iter_errors(value)]


def _find_remainder(_: object, step: float, value: object, __: object) -> Iterator[jsonschema.ValidationError]:
    """multipleOf of decimals as they are written: 0.0203 is a multiple of 0.0001, in binary it is not."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and Fraction(str(value)) % Fraction(str(step)):
        yield jsonschema.ValidationError(f"{value} is not a multiple of {step}")


def make_format_checker() -> FormatChecker:
    """Formats of jsonschema that need nothing installed, and the others that masks enforce."""
    checker = FormatChecker(["email", "ipv4", "ipv6", "uuid"])
    expressions = {"duration": _DURATION, "hostname": _HOSTNAME, "uri": _URI}
    for name, expression in expressions.items():
        checker.checks(name)(lambda value, e=expression: not isinstance(value, str) or bool(e.fullmatch(value)))
    checker.checks("date", ValueError)(lambda value: not isinstance(value, str) or _is_date(value))
    checker.checks("time", ValueError)(lambda value: not isinstance(value, str) or _is_time(value))
    checker.checks("date-time", ValueError)(lambda value: not isinstance(value, str) or _is_moment(value))
    return checker


def _is_moment(text: str) -> bool:
    date, separator, time = text[:10], text[10:11], text[11:]
    return _is_date(date) and separator in ("T", "t", " ") and _is_time(time)


def _is_date(text: str) -> bool:
    """RFC 3339, which has a year 0000; it is a leap year, as 2000 is."""
    datetime.date.fromisoformat(text.replace("0000-", "2000-") if text.startswith("0000-") else text)
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None


def _is_time(text: str) -> bool:
    """RFC 3339; a leap second counts as a second."""
    match = re.fullmatch(r"(\d\d:\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text, re.ASCII)
    if match is None:
        return False
    minutes, seconds, _, zone = match.groups()
    datetime.time.fromisoformat(f"{minutes}:{'59' if seconds == '60' else seconds}{zone.upper()}")
    return True


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no number")
