"""What a soak must not leave behind."""

from __future__ import annotations

import json

import pytest

from octavo.bench.server.usage import Usage
from octavo.bench.soak.plot import write_soak_png
from octavo.bench.soak.run import NUM_QUIET, quiet_times
from octavo.bench.soak.verdict import SoakResult, find_leaks
from octavo.bench.soak.watch import Reading, sum_of

MIB = 1024 * 1024


def usage(*, mib=100, fds=20, threads=5):
    return Usage(rss_bytes=mib * MIB, num_fds=fds, num_threads=threads)


def reading(at_s, front_end=None, engine=None, *, is_quiet=True, running=0.0, kv_share=0.0):
    return Reading(
        at_s=at_s,
        is_quiet=is_quiet,
        front_end=front_end or usage(),
        engine=engine or usage(),
        num_running=running,
        num_waiting=0.0,
        kv_share=kv_share,
        num_requests=int(at_s),
    )


def test_readings_that_are_alike_are_no_finding():
    busy = reading(50, usage(mib=400, fds=90), is_quiet=False, running=8, kv_share=0.9)
    assert find_leaks([reading(10), busy, reading(100), reading(200)], 16) == []


@pytest.mark.parametrize(
    ("last", "named"),
    [
        (reading(200, usage(fds=21)), "front end: 1 more descriptors"),
        (reading(200, engine=usage(threads=6)), "engine: 1 more threads"),
        (reading(200, engine=usage(mib=117)), "engine: 17.0 MiB more"),
        (reading(200, running=1), "running requests without clients: 1"),
        (reading(200, kv_share=0.01), "share of KV blocks in use without clients: 0.01"),
    ],
)
def test_what_is_left_behind_is_named(last, named):
    (found,) = find_leaks([reading(10), reading(100), last], 16)
    assert named in found


def test_memory_within_the_allowance_is_no_finding():
    assert find_leaks([reading(10), reading(200, usage(mib=115))], 16) == []


def test_one_quiet_reading_proves_nothing():
    assert find_leaks([reading(10), reading(20, is_quiet=False)], 16)


def test_quiet_readings_begin_behind_the_warm_up_and_end_with_the_soak():
    times = quiet_times(1800)
    assert len(times) == NUM_QUIET
    assert (times[0], times[-1]) == (180, 1800)


def test_the_result_is_told_as_text_json_and_picture(tmp_path):
    result = SoakResult(
        readings=[reading(60), reading(90, is_quiet=False), reading(120)],
        counts={"chat 200": 7},
        problems=["chat: status 500"],
        missing_kinds=["messages"],
        max_growth_mib=16,
    )
    assert "1 findings" in str(result)
    found = json.loads(json.dumps(result.as_json()))
    assert found["findings"] == ["chat: status 500"]
    assert found["readings"][0]["engine"]["num_fds"] == 20
    write_soak_png(result, tmp_path / "s.png", title="a soak")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


def test_samples_of_one_metric_are_added_up():
    text = '# TYPE a gauge\na{x="1"} 2.0\na{x="2"} 3\nab 7\n'
    assert sum_of(text, "a") == 5
    assert sum_of(text, "ab") == 7
