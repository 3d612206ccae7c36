from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.bench.serve.http_response import MAX_HEAD_BYTES, ResponseError, ResponseReader

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Name: a:b\r\n\r\n"
CHUNKED += b"3\r\nabc\r\nA;ext=1\r\n0123456789\r\n0\r\n\r\n"
SIZED = b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 5\r\n\r\nhello"


def read_in_pieces(data, cuts):
    reader = ResponseReader()
    edges = [0, *sorted(cuts), len(data)]
    body = b"".join(reader.feed(data[start:end]) for start, end in itertools.pairwise(edges) if start < end)
    return reader, body


@given(st.sets(st.integers(1, len(CHUNKED) - 1)))
def test_a_chunked_answer_is_the_same_wherever_it_is_cut(cuts):
    reader, body = read_in_pieces(CHUNKED, cuts)
    assert (body, reader.status, reader.is_complete, reader.keeps_connection) == (b"abc0123456789", 200, True, True)
    assert reader.headers["x-name"] == "a:b"


def test_a_chunk_for_each_read_is_the_same_as_all_at_once():
    reader = ResponseReader()
    pieces = [CHUNKED[: CHUNKED.index(b"3\r\n")], b"3\r\nabc\r\n", b"A\r\n01234567\r\n\r\n", b"0\r\n\r\n"]
    assert [reader.feed(piece) for piece in pieces] == [b"", b"abc", b"01234567\r\n", b""]
    assert reader.is_complete


@given(st.sets(st.integers(1, len(SIZED) - 1)))
def test_a_sized_answer_is_the_same_wherever_it_is_cut(cuts):
    reader, body = read_in_pieces(SIZED, cuts)
    assert (body, reader.status, reader.reason, reader.is_complete) == (b"hello", 429, "Too Many Requests", True)


def test_an_answer_without_length_ends_with_the_connection():
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nab") + reader.feed(b"c") == b"abc"
    assert not reader.is_complete
    reader.finish()
    assert reader.is_complete
    assert not reader.keeps_connection


@pytest.mark.parametrize("head", ["HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
def test_an_answer_without_body_is_complete_with_its_head(head):
    reader = ResponseReader()
    assert reader.feed(head.encode()) == b""
    assert reader.is_complete


def test_an_interim_answer_is_skipped():
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED) == b"hello"
    assert reader.status == 429


def test_connection_close_and_trailers_are_understood():
    reader = ResponseReader()
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\nX-T: 1\r\n\r\n")
    assert reader.is_complete
    assert not reader.keeps_connection


@pytest.mark.parametrize("cut", range(1, len(CHUNKED)))
def test_a_connection_that_ends_too_early_is_an_error(cut):
    reader = ResponseReader()
    reader.feed(CHUNKED[:cut])
    with pytest.raises(ResponseError, match="unfinished"):
        reader.finish()


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        SIZED + b"!",
        CHUNKED + b"!",
        b"HTTP/1.1 204 No Content\r\n\r\n!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000,
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_no_answer_is_refused(data):
    with pytest.raises(ResponseError):
        ResponseReader().feed(data)
