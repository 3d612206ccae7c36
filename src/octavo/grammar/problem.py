"""What is wrong with a grammar, and where in it.

Owns: JSON pointers (RFC 6901), the one form such an error takes.
"""

from __future__ import annotations

from octavo.base.errors import ValidationError

_MAX_MESSAGE_CHARS = 400


class SpecError(Exception):
    """A fault found inside a grammar. `pointer` says where, as a JSON pointer; None in a text that is no JSON."""

    def __init__(self, problem: str, pointer: str | None = None) -> None:
        self.problem = problem
        self.pointer = pointer
        super().__init__(problem)


def as_validation_error(problem: SpecError, kind: str) -> ValidationError:
    """`kind` is the field of structured_outputs that holds the grammar."""
    parameter = f"structured_outputs.{kind}"
    where = "" if problem.pointer is None else f' at "{problem.pointer}"'
    text = problem.problem
    if len(text) > _MAX_MESSAGE_CHARS:
        text = text[:_MAX_MESSAGE_CHARS] + " ..."
    return ValidationError(f"{parameter}{where}: {text}", parameter=parameter, value=problem.pointer)


def child(pointer: str, *steps: str | int) -> str:
    """The pointer of something inside."""
    return pointer + "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def shown(value: object) -> str:
    """A value for an error message, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
