"""The noise generator against published vectors and against what noise must be."""

from __future__ import annotations

import numpy as np
import pytest

from octavo.kernels.noise import gumbel_noise, philox4x32, uniform_noise

SOME_IDS = np.array([0, 1, 2, 3, 4, 5, 1000, 49151, 151935], np.int32)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_vectors_of_random123(
    counter: tuple[int, ...], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    words = philox4x32(np.array([counter, (7, 7, 7, 7)], np.uint32), key)
    assert tuple(words[0]) == expected


def test_counter_and_lane_come_from_token_id_and_position() -> None:
    seed, position, token_id = 0x0123456789ABCDEF, (5 << 32) + 6, 4 * 77 + 3
    words = philox4x32(np.array([[77, 6, 5, 0]], np.uint32), (0x89ABCDEF, 0x01234567))
    expected = ((int(words[0, 3]) >> 9) + 0.5) * 2.0**-23
    assert uniform_noise(seed, position, np.array([token_id], np.int32))[0] == expected


def test_noise_of_a_token_does_not_depend_on_the_others_asked_for() -> None:
    together = gumbel_noise(11, 12, SOME_IDS)
    for token_id, value in zip(SOME_IDS, together, strict=True):
        assert gumbel_noise(11, 12, np.array([token_id], np.int32))[0] == value
    np.testing.assert_array_equal(gumbel_noise(11, 12, SOME_IDS[::-1]), together[::-1])


@pytest.mark.parametrize(("seed", "position"), [(12, 12), (11, 13), (11 + (1 << 63), 12), (11, 12 + (1 << 40))])
def test_every_bit_of_seed_and_position_counts(seed: int, position: int) -> None:
    assert not np.any(gumbel_noise(seed, position, SOME_IDS) == gumbel_noise(11, 12, SOME_IDS))


def test_uniform_numbers_stay_inside_the_open_interval_and_fill_it() -> None:
    values = uniform_noise(3, 4, np.arange(200_000, dtype=np.int32))
    assert values.dtype == np.float32
    assert values.min() > 0
    assert values.max() < 1
    counts, _ = np.histogram(values, bins=20, range=(0, 1))
    assert np.abs(counts - 10_000).max() < 500


def test_gumbel_noise_has_the_mean_and_deviation_of_its_law() -> None:
    values = gumbel_noise(5, 6, np.arange(200_000, dtype=np.int32)).astype(np.float64)
    assert np.isfinite(values).all()
    assert abs(values.mean() - np.euler_gamma) < 0.02
    assert abs(values.std() - np.pi / np.sqrt(6)) < 0.02
