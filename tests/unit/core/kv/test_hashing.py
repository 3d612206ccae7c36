import hashlib
import struct
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.base.errors import ConfigError
from octavo.core.kv.hashing import HashChain, HashExtra, block_key

PROMPT = list(range(12))


def digests(
    token_ids: list[int] = PROMPT,
    *,
    block_size: int = 4,
    hash_key: bytes = b"key",
    model_identity: str = "m",
    weights_generation: int = 0,
    salt: str | None = None,
    extras: tuple[HashExtra, ...] = (),
) -> list[bytes]:
    chain = HashChain(
        block_size=block_size,
        hash_key=hash_key,
        model_identity=model_identity,
        weights_generation=weights_generation,
    )
    out: list[bytes] = []
    chain.extend(out, token_ids, len(token_ids) // block_size, salt=salt, extras=extras)
    return out


def test_a_digest_is_the_keyed_hash_of_parent_and_tokens() -> None:
    first, second, _ = digests()
    message = first + struct.pack("<4I", 4, 5, 6, 7)
    assert second == hashlib.blake2b(message, digest_size=32, key=b"key").digest()


def test_digests_are_the_same_in_every_process() -> None:
    assert digests()[0].hex() == "7bcbb424ecc8ce000910f35835d49e2cbb14f42080e152e07358ffd9c86b9315"


@pytest.mark.parametrize(
    "change",
    [
        {"hash_key": b"other"},
        {"model_identity": "n"},
        {"weights_generation": 1},
        {"block_size": 6},
        {"salt": "s"},
        {"salt": ""},
        {"extras": (HashExtra(tag="lora", value=b"a"),)},
        {"token_ids": [99, *PROMPT[1:]]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_decides_the_kv_changes_all_digests(change: dict[str, object]) -> None:
    assert not set(digests()) & set(digests(**change))  # type: ignore[arg-type]


def test_all_ways_to_differ_are_told_apart() -> None:
    extras = [
        (),
        (HashExtra(tag="lora", value=b"ab"),),
        (HashExtra(tag="lora", value=b"a"), HashExtra(tag="lora", value=b"b")),
        (HashExtra(tag="lor", value=b"aab"),),
        (HashExtra(tag="image", value=b"ab"),),
        (HashExtra(tag="image", value=b"ab", start=1),),
        (HashExtra(tag="salt", value=b"ab"),),
    ]
    chains = [digests(extras=extra) for extra in extras] + [digests(salt=salt) for salt in ("ab", "a")]
    for one, other in combinations(chains, 2):
        assert one[0] != other[0]


def test_a_later_token_leaves_earlier_digests_alone() -> None:
    changed = digests([*PROMPT[:5], 99, *PROMPT[6:]])
    assert changed[0] == digests()[0]
    assert changed[1] != digests()[1]
    assert changed[2] != digests()[2]


def test_a_ranged_extra_changes_digests_from_its_first_block_on() -> None:
    image = HashExtra(tag="image", value=b"cat", start=5, num_tokens=2)
    with_image = digests(extras=(image,))
    assert with_image[0] == digests()[0]
    assert with_image[1] != digests()[1]


@pytest.mark.parametrize(("begin", "end", "expected"), [(0, 4, False), (4, 8, True), (8, 12, True), (12, 16, False)])
def test_a_range_overlaps_the_blocks_it_has_positions_in(begin: int, end: int, expected: bool) -> None:
    assert HashExtra(tag="image", value=b"", start=7, num_tokens=5).overlaps(begin, end) is expected


def test_an_image_shifted_within_its_block_is_another_prefix() -> None:
    one, other = (digests(extras=(HashExtra(tag="image", value=b"cat", start=s, num_tokens=1),)) for s in (4, 5))
    assert one[0] == other[0]
    assert one[1] != other[1]


@given(st.lists(st.integers(0, 2**32 - 1), max_size=24), st.data())
def test_extending_bit_by_bit_gives_the_same_digests(token_ids: list[int], data: st.DataObject) -> None:
    chain = HashChain(block_size=4, hash_key=b"key", model_identity="m")
    num_blocks = len(token_ids) // 4
    split = data.draw(st.integers(0, num_blocks))
    out: list[bytes] = []
    for upto in (split, num_blocks):
        chain.extend(out, token_ids, upto, salt="s", extras=())
    assert out == digests(token_ids, salt="s")


@pytest.mark.parametrize("token_id", [-1, 2**32])
def test_ids_outside_of_32_bits_are_refused(token_id: int) -> None:
    with pytest.raises(struct.error):
        digests([0, 1, 2, token_id])


def test_a_key_that_is_too_long_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError, match="prefix_hash_key") as caught:
        digests(hash_key=b"secret" * 20)
    assert "secret" not in str(caught.value)


def test_block_keys_differ_by_group() -> None:
    assert block_key(b"d", 1) == b"d\x01\x00\x00\x00"
