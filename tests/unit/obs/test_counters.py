"""Counters of several front ends are one sum, whoever is asked, and whoever has died."""

from __future__ import annotations

import os

import pytest

from octavo.base.errors import InvariantError
from octavo.obs.catalogue import FRONT_END_METRICS, REQUEST_SUCCESS, TTFT, one_two_five
from octavo.obs.counters import CounterLayout, Counters, create_shared, label_values

LAYOUT = CounterLayout(FRONT_END_METRICS)


@pytest.fixture
def pages():
    fd = create_shared(LAYOUT, 2)
    attached = [Counters.attach(LAYOUT, fd, num_pages=2, page=page) for page in (0, 1)]
    os.close(fd)
    return attached


def test_every_front_end_reads_the_total_of_all(pages):
    pages[0].add(REQUEST_SUCCESS, 2, ("stop",))
    pages[1].add(REQUEST_SUCCESS, 3, ("stop",))
    assert [page.read(REQUEST_SUCCESS, ("stop",)) for page in pages] == [[5.0], [5.0]]


def test_the_counts_of_a_front_end_outlive_it_and_its_successor_counts_on():
    fd = create_shared(LAYOUT, 2)
    child = os.fork()
    if child == 0:
        Counters.attach(LAYOUT, fd, num_pages=2, page=1).observe(TTFT, 0.5)
        os._exit(0)
    os.waitpid(child, 0)
    successor = Counters.attach(LAYOUT, fd, num_pages=2, page=1)
    successor.observe(TTFT, 1.5)
    *counts, total = Counters.attach(LAYOUT, fd, num_pages=2, page=0).read(TTFT)
    os.close(fd)
    assert (sum(counts), total) == (2.0, 2.0)


def test_no_file_is_left_behind(pages):
    assert not [name for name in os.listdir("/dev/shm") if "octavo-counters" in name]


def test_series_do_not_overlap():
    counters = Counters.private(LAYOUT)
    series = [(metric, values) for metric in FRONT_END_METRICS for values in label_values(metric)]
    for number, (metric, values) in enumerate(series):
        if hasattr(metric, "bounds"):
            counters.observe(metric, float("inf") if number % 2 else -1.0, values)
        else:
            counters.add(metric, 1.0, values)
    for metric, values in series:
        items = counters.read(metric, values)
        assert sum(items[:-1] if hasattr(metric, "bounds") else items) == 1.0, (metric.name, values)


def test_a_label_value_that_is_not_in_the_catalogue_is_refused():
    with pytest.raises(InvariantError, match="no series"):
        Counters.private(LAYOUT).add(REQUEST_SUCCESS, 1, ("whatever a client sent",))


def test_a_page_outside_of_the_memory_is_refused():
    fd = create_shared(LAYOUT, 2)
    with pytest.raises(InvariantError, match="page 2 of 2"):
        Counters.attach(LAYOUT, fd, num_pages=2, page=2)
    os.close(fd)


def test_token_buckets_follow_the_1_2_5_series():
    assert one_two_five(100) == (1, 2, 5, 10, 20, 50, 100)
    assert one_two_five(4096)[-1] == 2000
