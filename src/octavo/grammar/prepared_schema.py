"""A schema made ready for the library: all that is checked before the library sees it.

Owns: the order of the checks, where a problem is for the caller.
Does not own: keywords (json_schema.py), references (schema_refs.py), whitespace and other options of a constraint.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from octavo.grammar.json_schema import SchemaWalk
from octavo.grammar.limits import GrammarLimits
from octavo.grammar.problem import SpecError
from octavo.grammar.schema_refs import check_levels


class PreparedSchema(NamedTuple):
    """A schema that was checked."""

    schema: dict[str, Any]
    multiple: int
    """States of the automata that count out its multipleOf."""


def prepare_schema(
    schema: object, limits: GrammarLimits, *, close_objects: bool = False, at: str = ""
) -> PreparedSchema:
    """The schema in the form the library takes; `at` is where it stands in what the caller has. Raises SpecError.

    `close_objects`: objects that name properties and say nothing of others take no others.
    """
    try:
        walk = SchemaWalk(limits, close_objects=close_objects)
        copied = walk.copy(schema, "")
        if copied is False:
            raise SpecError("no value can satisfy false", "")
        checked = {} if copied is True else copied
        assert isinstance(checked, dict)
        check_levels(checked, limits)
    except SpecError as problem:
        raise SpecError(problem.problem, at + (problem.pointer or "")) from problem
    return PreparedSchema(checked, walk.multiple)
