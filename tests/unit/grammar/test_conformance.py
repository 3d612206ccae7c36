"""JSON Schema test suite: what the grammar admits is valid; what cannot be enforced is refused with its place."""

import json
from collections import Counter
from pathlib import Path

import pytest
from fakes.grammar_tokenizer import make_test_backend
from fakes.matching import takes

from octavo.base.errors import ValidationError
from octavo.proto.structured import GrammarSpec

SUITE = Path(__file__).parents[2] / "data" / "json-schema-test-suite"
DIALECTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
REFUSED = json.loads((Path(__file__).parent / "refused_instances.json").read_text())
"""Valid instances that the matcher does not take, as "dialect/file: group: test", by reason."""


def _groups(dialect):
    for path in sorted((SUITE / dialect).glob("*.json")):
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": DIALECTS[dialect], **schema}
            yield f"{dialect}/{path.stem}: {group['description']}", schema, group["tests"]


def _compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _outcomes(dialect):
    """(kind, name of the test, error) of every test; kind: refused schema, or (valid, taken)."""
    backend = make_test_backend()
    for name, schema, tests in _groups(dialect):
        try:
            grammar = backend.compile(backend.prepare(GrammarSpec("json", _compact(schema))))
        except ValidationError as error:
            yield "unsupported", name, error
            continue
        for test in tests:
            yield (test["valid"], takes(grammar, _compact(test["data"]))), f"{name}: {test['description']}", None


@pytest.fixture(scope="module", params=sorted(DIALECTS))
def outcomes(request):
    return list(_outcomes(request.param))


def test_no_invalid_instance_is_taken(outcomes):
    assert [name for kind, name, _ in outcomes if kind == (False, True)] == []


def test_valid_instances_are_taken_but_for_those_listed(outcomes):
    listed = {name for names in REFUSED.values() for name in names}
    refused = {name for kind, name, _ in outcomes if kind == (True, False)}
    dialect = outcomes[0][1].partition("/")[0]

    assert refused == {name for name in listed if name.startswith(f"{dialect}/")}


def test_unsupported_schemas_are_refused_with_the_place_of_the_keyword(outcomes):
    for kind, name, error in outcomes:
        if kind == "unsupported":
            assert error.parameter == "structured_outputs.json"
            assert isinstance(error.value, str), name
            assert error.value == "" or error.value.startswith("/"), name


def test_most_of_the_suite_is_supported(outcomes):
    """A refusal is honest, but more of them than now would be a loss."""
    kinds = Counter("unsupported" if kind == "unsupported" else "tested" for kind, _, _ in outcomes)
    assert kinds["unsupported"] <= 200
    assert kinds["tested"] >= 450
