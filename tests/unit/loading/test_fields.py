import math

import pytest

from octavo.base.errors import LoadError
from octavo.loading.fields import Fields


def fields(**values):
    return Fields(values, "file.json")


def test_values_come_back_as_they_are():
    read = fields(count=3, ratio=0.5, on=True, name="x", whole=8192.0, part={"a": 1})
    assert read.integer("count") == 3
    assert read.integer("whole") == 8192
    assert read.number("ratio") == 0.5
    assert read.flag("on", False) is True
    assert read.text("name") == "x"
    assert read.optional_section("part").integer("a") == 1


def test_absent_and_null_are_the_same():
    read = fields(nothing=None)
    assert "nothing" not in read
    assert read.optional_integer("nothing") is read.optional_number("gone") is read.optional_text("gone") is None
    assert read.optional_section("gone") is None
    assert read.flag("nothing", True) is True


@pytest.mark.parametrize(
    ("value", "method"),
    [
        ("3", "integer"),
        (True, "integer"),
        (3.5, "integer"),
        (math.nan, "integer"),
        (0, "integer"),
        (2**31, "integer"),
        (-1, "integer"),
        ([1, 2], "integer"),
        ("1.0", "number"),
        (True, "number"),
        (math.nan, "number"),
        (math.inf, "number"),
        (10**400, "number"),
        (3, "text"),
        ([], "optional_section"),
        (None, "integer"),
        (None, "number"),
        (None, "text"),
    ],
)
def test_a_wrong_value_is_an_error_naming_file_and_key(value, method):
    with pytest.raises(LoadError, match=r"file\.json.*'key'"):
        getattr(fields(key=value), method)("key")


def test_a_flag_must_be_true_or_false():
    with pytest.raises(LoadError, match="'key' must be true or false, not 1"):
        fields(key=1).flag("key", False)


def test_a_long_value_is_shown_in_part():
    with pytest.raises(LoadError) as caught:
        fields(key="x" * 10_000).integer("key")
    assert len(str(caught.value)) < 200
