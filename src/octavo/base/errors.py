"""The error tree. Every error a user can meet derives from OctavoError.

OctavoError
├── ConfigError            options that are unknown, malformed or do not go together (all problems at once)
├── ValidationError        one request's value is wrong; also a ValueError; carries .parameter and .value
├── CapacityError          something can never fit in the memory that was granted
├── GrammarError           one text cannot go on in its grammar; its matcher is dead
├── LoadError              a model file, folder or tokenizer cannot be used; names file and tensor or key
│   └── ModelNotFoundError nothing by that name, here or in the cache
├── ShapeError             an array at a kernel's border disagrees with the op's contract; names the symbol
├── OverloadedError        too much is waiting; the same request may succeed later
├── EngineDeadError        the engine stopped; carries the cause
└── InvariantError         our own bug; never raised for bad input
"""

from __future__ import annotations

from dataclasses import dataclass


class OctavoError(Exception):
    """Base of every error raised on purpose."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing wrong with the configuration: which option, the value it had (None: none), what to do about it."""

    option: str
    value: object
    remedy: str

    def __str__(self) -> str:
        shown = "" if self.value is None else f"={self.value!r}"
        return f"{self.option}{shown}: {self.remedy}"


class ConfigError(OctavoError):
    """The configuration cannot be used. `problems` lists everything found, not only the first."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


class ValidationError(OctavoError, ValueError):
    """A value of one request is wrong. The message names the parameter, the value and the remedy."""

    def __init__(self, message: str, *, parameter: str | None = None, value: object = None) -> None:
        self.parameter = parameter
        self.value = value
        super().__init__(message)


class CapacityError(OctavoError):
    """Something can never fit; the message carries the number that would."""


class GrammarError(OctavoError):
    """One text cannot go on in its grammar: a token is not allowed, none is, or a limit of a step is reached."""


class LoadError(OctavoError):
    """A file of a model cannot be used. The message names the file and the tensor or key at fault."""


class ModelNotFoundError(LoadError):
    """No model by that name: not a path, not an alias, not in the cache."""


class ShapeError(OctavoError, ValueError):
    """An argument of a kernel does not match the op's contract; the message names the symbol."""


class OverloadedError(OctavoError):
    """Too much is waiting. Nothing is wrong with the request: try it again after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class EngineDeadError(OctavoError):
    """The engine has stopped and will not answer; the message carries the cause."""


class InvariantError(OctavoError):
    """An invariant of ours does not hold: a bug, never bad input."""
