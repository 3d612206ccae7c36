"""The form that a request asks of its text: from the fields of the API to one constraint.

Owns: response_format, structured_outputs and the old guided_* fields, that at most one of them holds a constraint, and
which field is named when the constraint is wrong.
Does not own: the constraint's own checks (proto/structured.py), grammars, constraints that tools bring (tools.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from octavo.base.errors import ValidationError
from octavo.config.answer_options import STRUCTURED_OUTPUTS_BACKENDS
from octavo.proto.sampling_checks import remedy_of
from octavo.proto.structured import StructuredOutputsParams
from octavo.server.api.sampling_fields import ConstraintFields
from octavo.server.errors import ApiError, invalid_value

_GUIDED = {
    "guided_json": "json",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "guided_json_object": "json_object",
}
"""Old field -> its name within structured_outputs."""
_OPERATORS = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""Of expressions, outside of classes."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the text must be, and which field of the request says so."""

    params: StructuredOutputsParams
    field: str
    path: str
    """Where in the request the grammar's text is."""

    def as_error(self, error: ValidationError) -> ApiError:
        """What the client is told of a fault in the grammar."""
        message = str(error).removeprefix(error.parameter or "")
        return invalid_value(f"{self.path}{message if message.startswith((' ', ':')) else ': ' + message}", self.field)


def read_constraint(request: ConstraintFields) -> Constraint | None:
    """The one constraint of a request, or None. Raises ApiError naming the field."""
    backend = request.guided_decoding_backend
    if backend is not None and backend.partition(":")[0] not in STRUCTURED_OUTPUTS_BACKENDS:
        raise invalid_value(f"guided_decoding_backend={backend[:40]!r}: is not known", "guided_decoding_backend")
    found = [
        constraint
        for constraint in (
            _from_response_format(request.response_format),
            _from_structured_outputs(request.structured_outputs),
            *(_from_guided(request, name) for name in _GUIDED),
        )
        if constraint is not None
    ]
    if len(found) > 1:
        names = " and ".join(constraint.field for constraint in found)
        raise invalid_value(f"{names}: exactly one constraint can be given", found[1].field)
    if not found:
        if request.guided_whitespace_pattern is not None:
            raise invalid_value("guided_whitespace_pattern: needs guided_json", "guided_whitespace_pattern")
        return None
    return found[0]


def form_of(params: StructuredOutputsParams) -> dict[str, Any] | None:
    """The same as part of a structural tag; None: it cannot be one."""
    spec = params.spec
    if params.disable_additional_properties:
        return None
    if spec.kind == "json":
        return {"type": "json_schema", "json_schema": json.loads(spec.text)}
    if spec.kind == "regex":
        return {"type": "regex", "pattern": spec.text}
    if spec.kind == "choice":
        # One expression, which is one automaton however many there are: an "or" has as many branches.
        return {
            "type": "regex",
            "pattern": "|".join(_OPERATORS.sub(r"\\\g<0>", text) for text in json.loads(spec.text)),
        }
    if spec.kind == "structural_tag":
        form: dict[str, Any] | None = json.loads(spec.text).get("format")
        return form
    return None


def as_tag(form: Mapping[str, Any], params: StructuredOutputsParams) -> StructuredOutputsParams:
    """A structural tag of this form, with the options of `params`."""
    return StructuredOutputsParams(
        structural_tag={"type": "structural_tag", "format": form},
        disable_any_whitespace=params.disable_any_whitespace,
        whitespace_pattern=params.whitespace_pattern,
    )


@contextmanager
def of_constraint(constraint: Constraint | None) -> Iterator[None]:
    """Inside, what is said of structured_outputs is said of the field that asked for them."""
    try:
        yield
    except ValidationError as error:
        if constraint is None or not (error.parameter or "").startswith("structured_outputs"):
            raise
        raise constraint.as_error(error) from None


@contextmanager
def behind_reasoning(constraint: Constraint | None) -> Iterator[None]:
    """Inside, a constraint is checked that holds this one, which was taken alone, behind reasoning."""
    try:
        yield
    except ValidationError as error:
        if constraint is None or not (error.parameter or "").startswith("structured_outputs"):
            raise
        problem = str(error).rpartition(": ")[2]
        raise invalid_value(f"{constraint.path}: behind reasoning it {problem}", constraint.field) from None


@contextmanager
def named(field: str, path: str | None = None) -> Iterator[None]:
    """Inside, a ValidationError is one of this field of the request. path: where in it; None: the field itself."""
    try:
        yield
    except ValidationError as error:
        raise _of_field(error, field, path or field) from None


def _of_field(error: ValidationError, field: str, path: str) -> ApiError:
    message = str(error)
    if message.startswith(field):
        return invalid_value(message, field)
    return invalid_value(f"{path}: {remedy_of(error)}", field)


def _from_structured_outputs(value: dict[str, Any] | None) -> Constraint | None:
    if value is None:
        return None
    backend = value.get("backend")
    if backend is not None and backend not in STRUCTURED_OUTPUTS_BACKENDS:
        raise invalid_value(f"structured_outputs.backend={str(backend)[:40]!r}: is not known", "structured_outputs")
    fields = {name: item for name, item in value.items() if name != "backend"}
    with named("structured_outputs"):
        params = StructuredOutputsParams(**fields)
    return Constraint(params, "structured_outputs", f"structured_outputs.{params.spec.kind}")


def _from_guided(request: ConstraintFields, name: str) -> Constraint | None:
    value = getattr(request, name)
    if value is None or (name == "guided_json_object" and value is False):
        return None
    fields: dict[str, Any] = {_GUIDED[name]: value}
    if name in ("guided_json", "guided_json_object"):
        fields["whitespace_pattern"] = request.guided_whitespace_pattern
    with named(name):
        return Constraint(StructuredOutputsParams(**fields), name, name)


def _from_response_format(value: Mapping[str, Any] | None) -> Constraint | None:
    if value is None:
        return None
    kind = value.get("type")
    if kind == "text":
        return None
    fields: dict[str, Any]
    path = "response_format"
    if kind == "json_object":
        fields = {"json_object": True}
    elif kind == "json_schema":
        fields = {"json": _schema_of(value)}
        path = "response_format.json_schema.schema"
    elif kind == "structural_tag":
        fields = {"structural_tag": dict(value)}
    else:
        known = "text, json_object, json_schema or structural_tag"
        raise _wrong_format(f".type={str(kind)[:40]!r}: must be {known}")
    with named("response_format", path):
        return Constraint(StructuredOutputsParams(**fields), "response_format", path)


def _schema_of(value: Mapping[str, Any]) -> object:
    wrapper = value.get("json_schema")
    if not isinstance(wrapper, Mapping):
        raise _wrong_format('.json_schema: is missing; it holds {"name": ..., "schema": ...}')
    schema = wrapper.get("schema")
    if not isinstance(schema, Mapping | bool):
        raise _wrong_format(".json_schema.schema: is missing; it must be a JSON schema")
    return schema


def _wrong_format(message: str) -> ApiError:
    return invalid_value(f"response_format{message}", "response_format")
