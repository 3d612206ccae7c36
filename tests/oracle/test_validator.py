"""The validator that judges constrained texts finds what it should, where it is more than jsonschema."""

from __future__ import annotations

import pytest
from oracle.validator import find_errors

VALID = {
    "date-time": ["2024-02-29T23:59:60Z", "2024-01-01t00:00:00.123456789+05:30"],
    "time": ["00:00:00Z", "23:59:60-00:00"],
    "date": ["2024-02-29", "0000-02-29"],
    "duration": ["P1Y2M3DT4H5M6S", "P2W", "PT0S"],
    "hostname": ["a-b.example", "x"],
    "uri": ["urn:isbn:1", "https://example.org/?q#f"],
    "email": ["a@b"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
    "ipv4": ["1.2.3.4"],
    "ipv6": ["::1", "::ffff:1.2.3.4"],
}
INVALID = {
    "date-time": ["2024-02-30T00:00:00Z", "2024-01-01 00:00", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00"],
    "time": ["24:00:00Z", "00:00:61Z", "00:00Z", "00:00:00+24:00"],
    "date": ["2023-02-29", "2024-1-1", "20240101", "2024-W01-1", "0000-0000-01-01"],
    "duration": ["P", "PT", "P1", "P1S", "1Y"],
    "hostname": ["-a", "a..b", "a_b", "x" * 64],
    "uri": ["no scheme", "a:b c", "//x"],
    "email": ["a"],
    "uuid": ["2eb8aa08aa9811eab4aa73b441d16380"],
    "ipv4": ["1.2.3", "256.1.1.1"],
    "ipv6": ["::1%eth0", "1:2"],
}


@pytest.mark.parametrize("name", VALID)
def test_formats(name: str) -> None:
    schema = {"format": name}
    assert [text for text in VALID[name] if find_errors(f'"{text}"', schema)] == []
    assert [text for text in INVALID[name] if not find_errors(f'"{text}"', schema)] == []
    assert find_errors("5", schema) == []


def test_multiples_are_of_decimals() -> None:
    assert find_errors("0.0203", {"multipleOf": 0.0001}) == []
    assert find_errors("-1e3", {"multipleOf": 10}) == []
    assert find_errors("0.02035", {"multipleOf": 0.0001}) != []
    assert find_errors("true", {"multipleOf": 10}) == []


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", '"a\nb"', "{} {}"])
def test_what_is_no_json_is_an_error(text: str) -> None:
    assert find_errors(text, {}) != []
