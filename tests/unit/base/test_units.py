import pytest

from octavo.base.units import align_up, ceil_div, format_bytes, parse_bytes, parse_count


@pytest.mark.parametrize(("num", "den", "expected"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2)])
def test_ceil_div_rounds_up(num, den, expected):
    assert ceil_div(num, den) == expected


def test_align_up_keeps_multiples():
    assert [align_up(n, 32) for n in (0, 1, 32, 33)] == [0, 32, 32, 64]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4096", 4096), ("8k", 8000), ("8K", 8192), ("25.6k", 25600), ("2M", 2 * 1024**2), ("2m", 2_000_000), (" 7 ", 7)],
)
def test_counts_read_decimal_and_binary_units(text, expected):
    assert parse_count(text) == expected


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5", "8kk", "0x10", "nan", "1e3"])
def test_malformed_counts_are_refused(text):
    with pytest.raises(ValueError, match="is not a"):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1073741824", 2**30), ("4G", 4 * 2**30), ("4GiB", 4 * 2**30), ("512m", 512 * 2**20), ("1.5G", 3 * 2**29)],
)
def test_sizes_read_powers_of_1024(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "G", "-4G", "four", "4X"])
def test_malformed_sizes_are_refused(text):
    with pytest.raises(ValueError, match="is not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("num_bytes", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (2**30, "1.00 GiB"), (2**41, "2.00 TiB")],
)
def test_sizes_are_written_for_people(num_bytes, expected):
    assert format_bytes(num_bytes) == expected
