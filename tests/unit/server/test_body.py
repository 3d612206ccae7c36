import asyncio
import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.server.body import BodyLimits, check_headers, check_structure, decode, read_body
from octavo.server.cycle import ClientDisconnectedError
from octavo.server.errors import ApiError

SMALL = BodyLimits(max_bytes=10, max_depth=8, max_keys=64)


def receiving(*messages):
    queue = list(messages)

    async def receive():
        return queue.pop(0)

    return receive


def part(body, more=True):
    return {"type": "http.request", "body": body, "more_body": more}


def test_the_parts_of_a_body_are_joined():
    assert asyncio.run(read_body(receiving(part(b"12345"), part(b"67890", False)), None, SMALL)) == b"1234567890"


def test_a_body_is_refused_as_soon_as_it_is_too_large():
    with pytest.raises(ApiError) as refused:
        asyncio.run(read_body(receiving(part(b"12345"), part(b"678901")), None, SMALL))
    assert (refused.value.status, refused.value.headers["connection"]) == (413, "close")


def test_a_length_that_is_too_large_is_refused_before_anything_is_read():
    with pytest.raises(ApiError) as refused:
        asyncio.run(read_body(receiving(), "11", SMALL))
    assert refused.value.status == 413


def test_a_client_that_leaves_in_the_middle_is_not_half_a_body():
    with pytest.raises(ClientDisconnectedError):
        asyncio.run(read_body(receiving(part(b"123"), {"type": "http.disconnect"}), None, SMALL))


def scan(value, depth=0):
    """(deepest nesting, keys and containers) of a JSON value."""
    if isinstance(value, dict):
        inner = [scan(item, depth + 1) for item in value.values()]
        return max([depth + 1, *(d for d, _ in inner)]), 1 + len(value) + sum(k for _, k in inner)
    if isinstance(value, list):
        inner = [scan(item, depth + 1) for item in value]
        return max([depth + 1, *(d for d, _ in inner)]), 1 + sum(k for _, k in inner)
    return depth, 0


JSON = st.recursive(
    st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(['"', "\\", "[{:"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=60,
)


@given(JSON)
def test_depth_and_keys_are_counted_as_a_parser_would(value):
    depth, keys = scan(value)
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    check_structure(body, BodyLimits(max_depth=max(depth, 1), max_keys=max(keys, 1)))
    for limits in (BodyLimits(max_depth=depth - 1), BodyLimits(max_depth=depth, max_keys=keys - 1)):
        if depth > 1:
            with pytest.raises(ApiError):
                check_structure(body, limits)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * (1 << 24),
        b'{"a":' * (1 << 21),
        b"[]," * (1 << 22),
        b'"' + b'\\"' * (1 << 22) + b":" * 200_000,
        b'["' * (1 << 20),
        b"9" * (1 << 23),
    ],
    ids=["open", "objects", "siblings", "quotes", "strings", "number"],
)
def test_hostile_bodies_are_refused_in_little_time(body):
    started = time.monotonic()
    with pytest.raises(ApiError) as refused:
        decode(body, dict, BodyLimits())
    assert refused.value.status == 400
    assert time.monotonic() - started < 2


class Example(msgspec.Struct):
    number: int | None = None
    items: list[str] | None = None


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"number":"1"}', "number"),
        (b'{"number":true}', "number"),
        (b'{"number":1.5}', "number"),
        (b'{"items":["a",1]}', "items"),
        (b"[]", None),
    ],
)
def test_the_field_at_fault_is_named(body, param):
    with pytest.raises(ApiError) as refused:
        decode(body, Example, BodyLimits())
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, "invalid_value", param)


def test_a_field_that_is_missing_is_named():
    class Needy(msgspec.Struct):
        prompt: str

    with pytest.raises(ApiError) as refused:
        decode(b"{}", Needy, BodyLimits())
    assert refused.value.param == "prompt"


@pytest.mark.parametrize("body", [b"", b"{", b'{"number":NaN}', b'{"number":1e400}', b'{"items":["\xff"]}', b"\xff"])
def test_what_is_not_json_is_refused(body):
    with pytest.raises(ApiError) as refused:
        decode(body, Example, BodyLimits())
    assert (refused.value.status, refused.value.code) in [(400, "invalid_json"), (400, "invalid_value")]


@pytest.mark.parametrize(
    ("content_type", "encoding", "is_accepted"),
    [
        ("application/json", None, True),
        ("Application/JSON; charset=utf-8", "identity", True),
        ("application/vnd.api+json", None, True),
        ("text/plain", None, False),
        (None, None, False),
        ("application/json", "gzip", False),
    ],
)
def test_only_plain_json_is_read(content_type, encoding, is_accepted):
    if is_accepted:
        check_headers(content_type, encoding)
    else:
        with pytest.raises(ApiError) as refused:
            check_headers(content_type, encoding)
        assert refused.value.status == 415
