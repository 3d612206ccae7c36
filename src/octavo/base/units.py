"""Arithmetic on sizes and counts, and how people write them."""

from __future__ import annotations

import re

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_NUMBER = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(?:i?[bB])?\s*$")


def ceil_div(numerator: int, denominator: int) -> int:
    """The smallest integer not below numerator / denominator."""
    return -(-numerator // denominator)


def align_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` not below `value`."""
    return ceil_div(value, multiple) * multiple


def parse_count(text: str) -> int:
    """Read "8192", "8k" (8,000), "8K" (8,192) or "25.6k", as vLLM's flags do. Raises ValueError."""
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a count such as 4096, 8k or 8K")
    number, unit = match.groups()
    factor = _DECIMAL.get(unit) or _BINARY[unit]
    value = float(number) * factor
    if value != int(value):
        raise ValueError(f"{text!r} is not a whole number")
    return int(value)


def parse_bytes(text: str) -> int:
    """Read a size in bytes: "4G" and "4GiB" are 4 x 2**30, "512M", "1073741824". Raises ValueError."""
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 4G, 512M or 1073741824")
    number, unit = match.groups()
    return int(float(number) * _BINARY[unit.upper()])


def format_bytes(num_bytes: int) -> str:
    """A size for people, in powers of 1024: "1.50 GiB"."""
    size = float(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{int(size)} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} TiB"
