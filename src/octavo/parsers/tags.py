"""Constraints as structural tags: each call is a tag whose content is the JSON schema of the tool's arguments.

Owns: the three shapes (calls only, calls in free text, one list of calls) that formats fill in.
Does not own: compiling them; what a format writes around arguments.
Source: the structural tag format of XGrammar, which vLLM takes too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from octavo.parsers.interface import ToolSpec
from octavo.proto.structured import StructuredOutputsParams

Format = dict[str, Any]
_META = frozenset("\\^$.|?*+()[]{}-/")
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def schema_of(tool: ToolSpec) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    return NO_ARGUMENTS if tool.parameters is None else dict(tool.parameters)


def arguments_of(tool: ToolSpec) -> Format:
    """Any valid arguments of this tool, as JSON."""
    return {"type": "json_schema", "json_schema": schema_of(tool)}


def tag(begin: str, content: Format, end: str) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def text(value: str) -> Format:
    return {"type": "const_string", "value": value}


def sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def either(*elements: Format) -> Format:
    return {"type": "or", "elements": list(elements)}


def text_unlike(start: str) -> Format:
    """Any text that does not begin so."""
    quoted = [f"\\{char}" if char in _META else char for char in start]
    ways = ["".join(quoted[:index]) + f"([^{char}](?s:.*))?" for index, char in enumerate(quoted)]
    return {"type": "regex", "pattern": "|".join(ways)}


def json_calls(tools: Sequence[ToolSpec], arguments_key: str, *, before: str = "", after: str = "") -> list[Format]:
    """One tag a tool: {"name": "...", "<arguments_key>": ...} between two texts."""
    return [
        tag(
            f'{before}{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "{arguments_key}": ',
            arguments_of(tool),
            f"}}{after}",
        )
        for tool in tools
    ]


def calls_only(tags: Sequence[Format], *, separator: str, parallel: bool) -> Format:
    """One or more calls (one unless parallel) and nothing else."""
    return {
        "type": "tags_with_separator",
        "tags": list(tags),
        "separator": separator,
        "at_least_one": True,
        "stop_after_first": not parallel,
    }


def calls_in_text(tags: Sequence[Format], *, triggers: Sequence[str], parallel: bool) -> Format:
    """Free text in which a trigger begins a call; unless parallel the text ends with the first."""
    return {
        "type": "triggered_tags",
        "triggers": list(triggers),
        "tags": list(tags),
        "at_least_one": False,
        "stop_after_first": not parallel,
    }


def structural_tag(form: Format) -> StructuredOutputsParams:
    """Raises ValidationError where the tools' schemas together are larger than a grammar may be."""
    return StructuredOutputsParams(structural_tag={"type": "structural_tag", "format": form})
