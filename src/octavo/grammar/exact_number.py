"""Numbers in a schema that the library follows exactly.

Owns: which constants and bounds it keeps as they are.   Does not own: the walk over a schema (json_schema.py).
The library reads numbers as doubles, not always the nearest (a constant 10**18 + 1 becomes 10**18), and turns the signs
of integers in 64 bits: numbers that are all near -2**63 are a recursion without end on the thread's stack.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import Final

from octavo.grammar.problem import SpecError, shown

MAX_INTEGER: Final = 9 * 10**18
"""Below 2**63 by more than doubles there are apart."""
_LARGEST_BOUND: Final = 2**63 - 1
"""Of integers, the library enforces this one for all that are larger."""
LEAST_BOUND: Final = -(2**63 - 1024)
"""The least double above -2**63: of integers, this one is enforced for all that are smaller."""
_MAX_DIGITS: Final = 15
_MAX_EXPONENT: Final = 22
"""Up to these a double is the nearest to its digits whoever reads them: both factors are exact."""


def check_constant(value: int | float, where: str) -> None:
    """A number that must be written as it is. Raises SpecError."""
    if isinstance(value, int):
        is_exact = abs(value) <= MAX_INTEGER and _is_double(value)
    else:
        is_exact = math.isfinite(value) and _is_short(value)
    if not is_exact:
        raise SpecError(
            f"the number {shown(value)} cannot be enforced exactly; it may have {_MAX_DIGITS} digits, or be a whole "
            f"number up to {MAX_INTEGER} that is a double",
            where,
        )


def check_bound(value: int | float, where: str, *, is_upper: bool) -> None:
    """The least or the largest of numbers. Raises SpecError."""
    if not abs(value) <= sys.float_info.max:
        raise SpecError(f"the number {shown(value)} is beyond all doubles", where)
    if is_upper and value < -MAX_INTEGER:
        raise SpecError(f"numbers that are all below -{MAX_INTEGER} are not supported", where)
    if not is_upper and value < LEAST_BOUND:
        raise SpecError(
            f"the bound {shown(value)} cannot be enforced: a lower bound of numbers may be {LEAST_BOUND} or more, one "
            'of type "integer" any',
            where,
        )
    if isinstance(value, int) and not _is_double(value) and not (is_upper and value >= _LARGEST_BOUND):
        raise SpecError(f"the bound {shown(value)} cannot be enforced exactly, since it is no double", where)


def lower_bound_of_integers(value: int | float) -> int | float:
    """This bound, or the least one that is enforced: what is admitted is within both."""
    return LEAST_BOUND if -sys.float_info.max <= value < LEAST_BOUND else value


def _is_double(value: int) -> bool:
    return int(float(value)) == value


def _is_short(value: float) -> bool:
    parts = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(parts.exponent, int)
    return len(parts.digits) <= _MAX_DIGITS and abs(parts.exponent) <= _MAX_EXPONENT
