"""What the front ends of a server have in hand, together."""

from __future__ import annotations

import os

import pytest

from octavo.obs.catalogue import FRONT_END_METRICS
from octavo.obs.counters import CounterLayout, Counters, create_shared
from octavo.obs.server_load import ServerLoad

LAYOUT = CounterLayout(FRONT_END_METRICS)


@pytest.fixture
def attach():
    fd = create_shared(LAYOUT, 2)
    yield lambda page: Counters.attach(LAYOUT, fd, num_pages=2, page=page)
    os.close(fd)


def numbers(load):
    return (load.num_active, load.num_queued_requests, load.num_queued_tokens)


def test_every_front_end_sees_the_load_of_all(attach):
    first, second = ServerLoad(attach(0)), ServerLoad(attach(1))
    first.change_active(2)
    second.change_active(1)
    first.change_queue(1, 100)
    second.change_queue(2, 30)
    second.change_queue(-1, -20)
    assert numbers(first) == numbers(second) == (3, 2, 110)


def test_a_dead_front_end_has_nothing_in_hand(attach):
    first, second = ServerLoad(attach(0)), ServerLoad(attach(1))
    first.change_active(1)
    second.change_active(5)
    second.change_queue(5, 50)
    attach(1).clear_gauges()
    assert numbers(first) == (1, 0, 0)
    ServerLoad(attach(1)).change_active(1)
    assert numbers(first) == (2, 0, 0)
