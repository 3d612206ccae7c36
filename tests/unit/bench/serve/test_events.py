from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.bench.serve import events
from octavo.bench.serve.events import EventError, EventReader

STREAM = (
    b": ping\n\n"
    b'data: {"a": 1}\n\n'
    b"event: message\nid: 4\ndata: two\ndata: lines\nretry: 10\n\n"
    b"data:close\r\n\r\n"
    b'data: {"t": "\\n\\u00e9\xc3\xa9"}\n\n'
    b"data: [DONE]\n\n"
)
EVENTS = [b'{"a": 1}', b"two\nlines", b"close", b'{"t": "\\n\\u00e9\xc3\xa9"}', b"[DONE]"]


@given(st.sets(st.integers(1, len(STREAM) - 1)))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts):
    reader = EventReader()
    edges = [0, *sorted(cuts), len(STREAM)]
    found = [event for start, end in itertools.pairwise(edges) for event in reader.feed(STREAM[start:end])]
    assert found == EVENTS
    assert not reader.has_rest


def test_one_byte_at_a_time():
    reader = EventReader()
    assert [event for at in range(len(STREAM)) for event in reader.feed(STREAM[at : at + 1])] == EVENTS


def test_an_event_without_an_end_is_kept_back():
    reader = EventReader()
    assert reader.feed(b"data: half") == []
    assert reader.has_rest


def test_an_endless_event_is_refused(monkeypatch):
    monkeypatch.setattr(events, "MAX_EVENT_BYTES", 100)
    with pytest.raises(EventError, match="100 bytes"):
        EventReader().feed(b"data: " + b"x" * 101)
