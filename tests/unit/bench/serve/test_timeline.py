from __future__ import annotations

import importlib.util
import struct
from xml.etree import ElementTree

import pytest

from octavo.base.errors import ConfigError
from octavo.bench.serve import timeline as timeline_module
from octavo.bench.serve.record import RequestRecord
from octavo.bench.serve.svg_chart import round_ticks
from octavo.bench.serve.timeline import NUM_BUCKETS, Phase, make_timeline, parse_itl_limits
from octavo.bench.serve.timeline_html import render_timeline
from octavo.bench.serve.timeline_png import has_matplotlib, write_timeline_png

LIMITS_S = (0.025, 0.050)


def record(start_s, ttft_s, itls_s, *, index=0):
    return RequestRecord(
        index=index,
        num_prompt_tokens=5,
        start_s=start_s,
        ttft_s=ttft_s,
        itls_s=itls_s,
        latency_s=ttft_s + sum(itls_s),
        is_success=True,
    )


def failed():
    return RequestRecord(index=0, num_prompt_tokens=5, start_s=0.0)


def two_requests():
    return make_timeline(
        [record(10.0, 0.5, [0.01, 0.01, 0.03, 0.07, 0.01]), failed(), record(10.5, 0.5, [])], [6, 0, 1], LIMITS_S
    )


def test_gaps_are_classed_and_neighbours_merged():
    first, second = two_requests().rows
    assert [segment.phase for segment in first.segments] == [
        Phase.FIRST_TOKEN,
        Phase.FAST,
        Phase.MEDIUM,
        Phase.SLOW,
        Phase.FAST,
    ]
    times_s = [(segment.start_s, segment.end_s) for segment in first.segments]
    assert times_s[0] == (0.0, 0.5)
    assert times_s[1] == pytest.approx((0.5, 0.52))
    assert times_s[-1] == pytest.approx((0.62, 0.63))
    assert second.segments[0].start_s == 0.5


def test_series_add_up_to_tokens_and_open_time():
    timeline = two_requests()
    width_s = timeline.duration_s / NUM_BUCKETS
    assert timeline.duration_s == 1.0
    assert sum(timeline.tokens_per_s) * width_s == pytest.approx(7)
    assert sum(timeline.open_requests) * width_s == pytest.approx(0.63 + 0.5)
    assert max(timeline.open_requests) == pytest.approx(2)
    assert (timeline.ttfts_s, len(timeline.itls_s), timeline.num_requests) == ([0.5, 0.5], 5, 2)


def test_a_large_run_is_thinned_out(monkeypatch):
    monkeypatch.setattr(timeline_module, "MAX_ROWS", 10)
    records = [record(float(index), 0.5, [], index=index) for index in range(25)]
    timeline = make_timeline(records, [1] * 25, LIMITS_S)
    assert len(timeline.rows) == 9
    assert timeline.num_requests == 25


@pytest.mark.parametrize("records", [[], [failed()]])
def test_without_a_success_there_is_nothing_to_draw(records):
    assert make_timeline(records, [0] * len(records), LIMITS_S) is None


def test_thresholds_are_read():
    assert parse_itl_limits("25,50") == LIMITS_S


@pytest.mark.parametrize("text", ["", "25", "50,25", "a,b", "0,5", "1,2,3"])
def test_other_thresholds_are_refused(text):
    with pytest.raises(ConfigError, match="--timeline-itl-thresholds"):
        parse_itl_limits(text)


@pytest.mark.parametrize(("high", "ticks"), [(0, [0, 1]), (10, [0, 2, 4, 6, 8, 10]), (0.7, [0, 0.2, 0.4, 0.6, 0.8])])
def test_ticks_are_round(high, ticks):
    assert round_ticks(high, 5) == pytest.approx(ticks)


def test_the_page_needs_nothing_else_and_shows_all():
    page = render_timeline(two_requests(), title="<m> & co", facts={"Median TTFT": "5 ms"})
    head, _, body = page.partition("<body>")
    assert "<title>&lt;m&gt; &amp; co</title>" in head
    for outside in ("http:", "https:", "src=", "href=", "@import", "url("):
        assert outside not in page
    tree = ElementTree.fromstring("<body>" + body.partition("</body>")[0] + "</body>")
    assert len(tree.findall(".//svg")) == 5
    assert [rect.get("class") for rect in tree.findall(".//svg//rect")] == [
        "first",
        "fast",
        "medium",
        "slow",
        "fast",
        "first",
    ]
    assert "request 0: 5 + 6 tokens, TTFT 500.0 ms" in body
    assert "5 ms" in body


def test_a_page_of_answers_with_one_token_says_that_no_gap_was_measured():
    page = render_timeline(make_timeline([record(0.0, 0.1, [])], [1], LIMITS_S), title="t", facts={})
    assert "none measured" in page


def test_the_picture_is_a_png(tmp_path):
    path = tmp_path / "run.png"
    write_timeline_png(two_requests(), path, title="t")
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1440, 1080)


def test_whether_pictures_can_be_drawn_follows_the_installation(monkeypatch):
    assert has_matplotlib()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not has_matplotlib()
