"""Whatever comes in, check either admits it or says what is wrong; what it admits can be started."""

import json

from fakes.grammar_tokenizer import make_test_backend
from fakes.matching import mask_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo.base.errors import ValidationError
from octavo.proto.structured import GrammarSpec

KEYWORDS = [
    "type",
    "properties",
    "items",
    "prefixItems",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "$defs",
    "enum",
    "const",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "required",
    "additionalProperties",
    "patternProperties",
    "minProperties",
    "maxProperties",
    "$id",
    "$anchor",
    "$schema",
    "not",
    "x",
]
WORDS = [*KEYWORDS, "object", "string", "integer", "array", "#", "#/$defs/x", "^a", "[", "a", ""]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=14,
)
PIECES = [
    "start",
    "root",
    ":",
    "::=",
    '"',
    '"a"',
    "/",
    "/[a]/",
    "|",
    "(",
    ")",
    "*",
    "{2,3}",
    "%json%{}",
    "%json",
    "A",
    "b",
    "[lazy]",
    "<",
    "<tool_call>",
    "\\",
    "[",
    "]",
    ".",
    "#",
    "//",
    "~",
    "&",
    "é",
    "0",
    "%ignore",
    "@x",
    "->",
    ",",
]
MARKS = st.lists(st.sampled_from([*PIECES, "\n", " "]), max_size=25).map(
    lambda pieces: "".join(pieces).replace("%{", " {")
)
TAG_WORDS = [
    "const_string",
    "any_text",
    "tag",
    "sequence",
    "or",
    "triggered_tags",
    "regex",
    "json_schema",
    "<tool_call>",
    "a",
]
TAG_KEYS = [
    "type",
    "value",
    "content",
    "elements",
    "tags",
    "triggers",
    "begin",
    "end",
    "pattern",
    "json_schema",
    "separator",
    "at_least_one",
]
TAG_VALUES = st.recursive(
    st.sampled_from([*TAG_WORDS, ""]) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TAG_KEYS), inner, max_size=5),
    max_leaves=12,
)
RELAXED = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def _error_of(spec):
    try:
        backend = make_test_backend()
        grammar = backend.compile(backend.prepare(spec))
    except ValidationError as error:
        return error
    mask_of(grammar.start())
    return None


def _is_clean(spec):
    """Admitted with a first mask, or refused in the form that errors have."""
    error = _error_of(spec)
    return error is None or (error.parameter == f"structured_outputs.{spec.kind}" and "Parser" not in str(error))


@RELAXED
@given(JSON_VALUES)
def test_any_schema(value):
    assert _is_clean(GrammarSpec("json", json.dumps(value)))


@RELAXED
@given(st.text(max_size=30) | MARKS)
def test_any_expression(text):
    assert _is_clean(GrammarSpec("regex", text))


@RELAXED
@given(MARKS)
def test_any_grammar(text):
    assert _is_clean(GrammarSpec("grammar", text))


@RELAXED
@given(MARKS.map(lambda text: f"start: a B\na: {text}\nB: {text}"))
def test_any_rule(text):
    assert _is_clean(GrammarSpec("grammar", text))


@RELAXED
@given(TAG_VALUES)
def test_any_structural_tag(value):
    assert _is_clean(GrammarSpec("structural_tag", json.dumps({"type": "structural_tag", "format": value})))


@RELAXED
@given(st.text(max_size=40))
def test_any_text_in_place_of_json(text):
    for kind in ("json", "structural_tag"):
        assert _is_clean(GrammarSpec(kind, text))
