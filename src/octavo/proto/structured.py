"""StructuredOutputsParams: what form a text must have, with vLLM's names, and the grammar that this asks for.

Owns: the fields, exactly one constraint, their one normal form.
Does not own: whether a grammar can be compiled (`GrammarBackend.check`), and masks.
Invariants: equal constraints have equal encodings; normalising is idempotent; JSON keeps the order of its keys, since
that is the order in which properties are written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from octavo.proto.sampling_checks import refuse
from octavo.proto.sampling_names import refuse_unknown

MAX_GRAMMAR_BYTES: Final = 128 << 10
"""Of a schema, an expression, a grammar, or all choices together: it is read by each process it comes to."""
MAX_PREPARED_CHARS: Final = 1 << 20
"""Of a grammar in a library's form: escapes make texts longer."""
MAX_CHOICES: Final = 4096
ANY_OBJECT: Final = '{"type":"object"}'
"""The schema that json_object stands for."""

_PREFIX: Final = "structured_outputs."

GrammarKind = Literal["json", "regex", "choice", "grammar", "structural_tag"]


class GrammarSpec(NamedTuple):
    """A grammar to compile. Hashable: equal ones share one compiled grammar."""

    kind: GrammarKind
    text: str
    """A JSON schema (json), a regular expression, a JSON list of strings (choice), a grammar, a JSON structural tag."""
    options: tuple[tuple[str, str | bool], ...] = ()
    """(name, value) of those that were given, by name: disable_additional_properties, disable_any_whitespace,
    whitespace_pattern."""


class PreparedGrammar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A grammar that a back end has checked, in the form its library takes: compiling it again walks nothing in Python.

    Hashable: equal ones share one compiled grammar.
    """

    text: Annotated[str, msgspec.Meta(max_length=MAX_PREPARED_CHARS)]
    num_bytes: int
    """Memory of the compiled grammar, estimated from above."""


class _KnownNames(msgspec.StructMeta):
    """Makes a struct class that explains the keyword it does not know. Raises ValidationError."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - set(self.__struct_fields__):
            refuse_unknown(name, kwargs[name], self.__struct_fields__, prefix=_PREFIX)
        return super().__call__(*args, **kwargs)


class StructuredOutputsParams(
    msgspec.Struct, metaclass=_KnownNames, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The form of one text. Raises ValidationError unless it holds exactly one constraint.

    json: a JSON schema, as text or as its value. regex: the whole text matches it. choice: the text is one of these.
    grammar: Lark or GBNF. json_object: any JSON object. structural_tag: free text with constrained parts.
    whitespace_pattern: what may stand between the tokens of JSON.
    """

    json: str | dict[str, Any] | bool | None = None
    """Kept as compact JSON text."""
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | dict[str, Any] | None = None
    """Kept as compact JSON text."""
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in _NORMALISERS if getattr(self, name) is not None]
        if len(given) != 1:
            found = "none is given" if not given else f"{' and '.join(given)} are given"
            refuse("structured_outputs", given, f"needs exactly one of {', '.join(_NORMALISERS)}; {found}")
        name = given[0]
        value = _NORMALISERS[name](_PREFIX + name, getattr(self, name))
        msgspec.structs.force_setattr(self, name, value)
        for option in ("disable_any_whitespace", "disable_additional_properties"):
            if not isinstance(getattr(self, option), bool):
                refuse(_PREFIX + option, getattr(self, option), "must be true or false")
        if self.whitespace_pattern is not None:
            _as_text(_PREFIX + "whitespace_pattern", self.whitespace_pattern)

    @property
    def spec(self) -> GrammarSpec:
        """The grammar this asks for."""
        options = tuple((name, getattr(self, name)) for name in _OPTIONS if getattr(self, name))
        if self.json_object is not None:
            return GrammarSpec("json", ANY_OBJECT, options)
        if self.choice is not None:
            return GrammarSpec("choice", _write_json("choice", self.choice), options)
        for kind in _TEXT_KINDS:
            text = getattr(self, kind)
            if text is not None:
                return GrammarSpec(kind, text, options)
        raise AssertionError("one constraint is always given")


_OPTIONS: Final = ("disable_additional_properties", "disable_any_whitespace", "whitespace_pattern")
_TEXT_KINDS: Final[tuple[GrammarKind, ...]] = ("json", "regex", "grammar", "structural_tag")


def as_structured_outputs(name: str, value: object) -> StructuredOutputsParams:
    """The params themselves, or their fields in a mapping."""
    if isinstance(value, StructuredOutputsParams):
        return value
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        refuse(name, value, "must be StructuredOutputsParams or a mapping of its fields")
    return StructuredOutputsParams(**value)


def _as_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        refuse(name, value, "must be a string")
    if not value.strip():
        refuse(name, value, "must not be empty")
    if "\0" in value:
        refuse(name, value, "must not hold a NUL character")
    _check_size(name, value)
    return value


def _check_size(name: str, text: str) -> None:
    try:
        num_bytes = len(text.encode())
    except UnicodeEncodeError:
        refuse(name, text, "holds a surrogate without its other half")
    if num_bytes > MAX_GRAMMAR_BYTES:
        refuse(name, text, f"has {num_bytes} bytes, at most {MAX_GRAMMAR_BYTES} are taken")


def _as_json(name: str, value: object) -> str:
    """Compact JSON text of a JSON text or of its value."""
    if isinstance(value, str):
        if not value.strip():
            refuse(name, value, "must not be empty")
        _check_size(name, value)
        try:
            value = json.loads(value, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            refuse(name, value, f"is not JSON: {error}")
    if not isinstance(value, dict | bool):
        refuse(name, value, "must be a JSON object")
    text = _write_json(name, value)
    _check_size(name, text)
    return text


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _write_json(name: str, value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        refuse(name, value, f"cannot be written as JSON: {error}")


def _as_tag(name: str, value: object) -> str:
    text = _as_json(name, value)
    if text in ("{}", "true", "false"):
        refuse(name, value, "must be a JSON object that holds tags")
    return text


def _as_choices(name: str, value: object) -> list[str]:
    """Distinct non-empty strings in the order given."""
    if isinstance(value, str) or not isinstance(value, list | tuple):
        refuse(name, value, "must be a list of strings")
    if not 0 < len(value) <= MAX_CHOICES:
        refuse(name, value, f"has {len(value)} entries, from 1 to {MAX_CHOICES} are taken")
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item:
            refuse(f"{name}[{index}]", item, "must be a string that is not empty")
    _check_size(name, "".join(value))
    return list(dict.fromkeys(value))


def _as_true(name: str, value: object) -> bool:
    if value is not True:
        refuse(name, value, "must be true; leave it out instead")
    return True


_NORMALISERS: Final = {
    "json": _as_json,
    "regex": _as_text,
    "choice": _as_choices,
    "grammar": _as_text,
    "json_object": _as_true,
    "structural_tag": _as_tag,
}
"""Constraint -> its normal form; each raises ValidationError."""
