"""Calls into llguidance: whatever it raises is a fault of the grammar it was given, panics included.

Owns: that rule, and schemas in the library's form.   Does not own: what is called (llguidance_backend.py, matcher.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from llguidance import LLMatcher

from octavo.grammar.problem import SpecError

T = TypeVar("T")


def is_panic(error: BaseException) -> bool:
    """True for a panic of the library: a BaseException of a class that cannot be imported."""
    return type(error).__name__ == "PanicException"


def guarded(function: Callable[[], T]) -> T:
    """What the function returns. Raises SpecError, and nothing else that comes from the library."""
    try:
        return function()
    except SpecError:
        raise
    except Exception as error:
        raise SpecError("the grammar library cannot read it") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise SpecError("the grammar library fails on it") from error


def schema_grammar(schema: dict[str, Any]) -> str:
    """A schema in the library's form. Raises SpecError."""
    text: str = guarded(lambda: LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    return text
