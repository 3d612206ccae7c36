"""The constraint of a request whose tools may be called.

Owns: what is constrained for each choice of tools, also beside a form that the request asks of its text; whose fault an
error about such a constraint is.
Does not own: how calls are written (parsers), grammars.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from octavo.base.errors import ValidationError
from octavo.parsers.interface import ToolFormat, ToolSpec
from octavo.proto.structured import StructuredOutputsParams
from octavo.server.errors import ApiError, invalid_value
from octavo.server.structured import Constraint, as_tag, form_of
from octavo.server.tools import ToolUse
from octavo.server.tools_schema import locate

_OWN_PLACE = "/format/elements/0/json_schema"
"""Of the text's own schema, where it stands beside calls."""


class ConstraintMaker:
    """For one request."""

    def __init__(self, tool: ToolFormat, chat_template: str, use: ToolUse) -> None:
        self._tool = tool
        self._template = chat_template
        self._use = use
        self.specs = [_spec_of(function) for function in use.callable]

    def forced(self, own: Constraint | None) -> ToolConstraint:
        """The answer is a call. A response_format is about text, of which there is none then."""
        if own is not None and own.field != "response_format":
            raise invalid_value(f"{own.field}: excludes a call that must come; send tool_choice none", own.field)
        return self._wrap(self._calls_only())

    def either(self, own: Constraint) -> ToolConstraint:
        """Text of the form that the request asks for, or calls and nothing else, as the model chooses."""
        text_form = form_of(own.params)
        calls = _tag_of(self._calls_only()).get("format")
        if text_form is None or calls is None:
            raise invalid_value(
                f"{own.field}: cannot be combined with tools that may be called; send tool_choice none or required",
                own.field,
            )
        return self._wrap(as_tag({"type": "or", "elements": [text_form, calls]}, own.params), own)

    def begun(self, strict_level: str) -> ToolConstraint | None:
        """Text is free; a call that has begun follows the schema of its tool where that is asked for."""
        if strict_level == "auto" and not any(spec.strict for spec in self.specs):
            return None
        chosen = [spec if spec.strict or strict_level == "parameter" else _loosened(spec) for spec in self.specs]
        params = self._tool.constraint(
            chosen, required=False, parallel=self._use.parallel, chat_template=self._template
        )
        if params is None:
            remedy = f"calls of this model ({self._tool.name}) can be strict with tool_choice required or a name only"
            raise ApiError(400, "unsupported_feature", f"tools: {remedy}", param="tools")
        return self._wrap(params)

    def _calls_only(self) -> StructuredOutputsParams:
        params = self._tool.constraint(
            self.specs, required=True, parallel=self._use.parallel, chat_template=self._template
        )
        assert params is not None, f"{self._tool.name} has no constraint for calls that must come"
        return params

    def _wrap(self, params: StructuredOutputsParams, own: Constraint | None = None) -> ToolConstraint:
        return ToolConstraint(params, "tools", "tools", self._use.names, self._use.callable, own)


@dataclass(frozen=True, slots=True)
class ToolConstraint(Constraint):
    """Made of the schemas of the tools that may be called, and of the text's own if it has one."""

    names: Sequence[str]
    """Of all tools of the request, in order."""
    callable: Sequence[Mapping[str, Any]]
    own: Constraint | None = None

    def as_error(self, error: ValidationError) -> ApiError:
        """Names the tool and the place in its schema, where that can be told."""
        if not isinstance(error.value, str):
            return Constraint.as_error(self, error)
        problem = str(error).partition(f'"{error.value}": ')[2]
        if self.own is not None and error.value.startswith(_OWN_PLACE):
            place = error.value.removeprefix(_OWN_PLACE)
            return invalid_value(f'{self.own.path} at "{place}": {problem}', self.own.field)
        schemas = [function.get("parameters") for function in self.callable]
        found = locate(error.value, _tag_of(self.params), schemas)
        if found is None:
            return Constraint.as_error(self, error)
        index, place = found
        position = self.names.index(self.callable[index]["name"])
        return invalid_value(f'tools[{position}].function.parameters at "{place}": {problem}', "tools")


def _tag_of(params: StructuredOutputsParams) -> dict[str, Any]:
    """The structural tag; {} for a constraint of another kind."""
    spec = params.spec
    tag: dict[str, Any] = json.loads(spec.text) if spec.kind == "structural_tag" else {}
    return tag


def _spec_of(function: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=function["name"], parameters=function.get("parameters"), strict=bool(function.get("strict", False))
    )


def _loosened(spec: ToolSpec) -> ToolSpec:
    """Any object for arguments."""
    return dataclasses.replace(spec, parameters={"type": "object"})
