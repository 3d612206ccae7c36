import json
from decimal import Decimal

import pytest
from fakes.matching import compiled, takes

from octavo.base.errors import ValidationError

LEAST = -(2**63)
TOO_FINE = [
    2**53 + 1,
    10**18 + 1,
    2**63 - 1,
    2**64,
    -(10**18) - 1,
    0.24203437387007698,
    3765880550008322.25,
    1.5e300,
    1e-40,
]
EXACT = [0, -7, 2**53, -(2**53), 10**18, 9 * 10**18, -(2**62), 0.1, -12.5, 1e22, 1e-7, 123456789.012345]


@pytest.mark.parametrize("value", [LEAST, LEAST + 1, LEAST + 13, LEAST + 512])
@pytest.mark.parametrize("keyword", ["const", "maximum", "exclusiveMaximum"])
def test_numbers_that_the_library_would_never_come_back_from_are_refused(keyword, value):
    schema = {keyword: value, "minimum": float(LEAST), "type": "integer"}
    with pytest.raises(ValidationError, match=f'at "/{keyword}"'):
        compiled(json=schema)


@pytest.mark.parametrize("value", [LEAST, LEAST + 1])
def test_they_are_refused_wherever_a_schema_can_be(value):
    with pytest.raises(ValidationError, match='at "/properties/a/enum/1/0/b"'):
        compiled(json={"properties": {"a": {"enum": [1, [{"b": value}]]}}})
    with pytest.raises(ValidationError):
        compiled(grammar=f'start: %json {{"const": {value}}}')
    with pytest.raises(ValidationError):
        compiled(structural_tag={"format": {"type": "json_schema", "json_schema": {"const": value}}})


@pytest.mark.parametrize("value", TOO_FINE)
def test_a_constant_that_would_be_another_is_refused(value):
    for schema in ({"const": value}, {"enum": [1, value]}):
        with pytest.raises(ValidationError, match="cannot be enforced exactly"):
            compiled(json=schema)


@pytest.mark.parametrize("value", EXACT)
def test_other_constants_are_written_as_they_are(value):
    text = f"{Decimal(repr(value)):f}"
    assert json.loads(text) == value
    assert takes(compiled(json={"const": value}), text)


@pytest.mark.parametrize("keyword", ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"])
def test_a_bound_that_would_be_another_is_refused(keyword):
    with pytest.raises(ValidationError, match=f'at "/{keyword}": the bound'):
        compiled(json={"type": "integer", keyword: 2**53 + 1})


def test_the_largest_integers_of_64_bits_are_bounds():
    for largest in (2**63 - 1, 2**64 - 1):
        grammar = compiled(json={"type": "integer", "minimum": 0, "maximum": largest})
        assert takes(grammar, str(2**63 - 1))
        assert not takes(grammar, str(2**64))


def test_a_bound_beyond_all_doubles_is_refused():
    with pytest.raises(ValidationError, match="beyond all doubles"):
        compiled(json={"type": "number", "maximum": 10**309})


@pytest.mark.parametrize("text", ['{"multipleOf": 1e400}', '{"const": 1e400}', '{"maximum": -1e400}', '{"const": NaN}'])
def test_numbers_that_are_none_are_refused_in_grammars_too(text):
    with pytest.raises(ValidationError):
        compiled(grammar=f"start: %json {text}")


@pytest.mark.parametrize("types", ["integer", ["null", "integer"]])
@pytest.mark.parametrize("bound", [{"minimum": LEAST}, {"exclusiveMinimum": LEAST - 1}, {"minimum": -1e300}])
def test_a_lower_bound_beyond_the_librarys_integers_admits_none_below_it(types, bound):
    grammar = compiled(json={"type": types, "maximum": -LEAST - 1, **bound})
    assert all(takes(grammar, str(value)) for value in (0, 5, -5, -(9 * 10**18), -LEAST - 1))
    assert not any(takes(grammar, str(value)) for value in (LEAST - 1, LEAST - 1024, -(10**19), -LEAST))


@pytest.mark.parametrize("types", [{}, {"type": "number"}, {"type": ["integer", "number"]}])
@pytest.mark.parametrize("keyword", ["minimum", "exclusiveMinimum"])
def test_a_lower_bound_of_numbers_beyond_that_is_refused_in_our_words(types, keyword):
    with pytest.raises(ValidationError, match=f'at "/{keyword}": the bound -.* cannot be enforced: a lower bound'):
        compiled(json={keyword: LEAST, **types})
    compiled(json={keyword: LEAST + 1024, **types})


@pytest.mark.parametrize("value", ["x", None, True])
def test_a_lower_bound_that_is_no_number_is_refused(value):
    with pytest.raises(ValidationError, match=r'at "/minimum": .* is no number'):
        compiled(json={"type": "integer", "minimum": value})
