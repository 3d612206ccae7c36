from __future__ import annotations

import pytest
from fakes.scheduling import request

from octavo.base.errors import ConfigError
from octavo.core.kv.sequence import KvSequence
from octavo.core.policy import FcfsPolicy, PriorityPolicy, SchedulingPolicy, make_policy
from octavo.core.request import Request


def order(policy: SchedulingPolicy, *arrivals: tuple[int, float]) -> list[int]:
    """Indices of (priority, arrival_s) requests in the policy's order."""
    requests = [
        Request(request(f"r{idx}", priority=priority, arrival_s=at), idx, KvSequence(), max_model_len=64)
        for idx, (priority, at) in enumerate(arrivals)
    ]
    return [one.ordinal for one in sorted(requests, key=policy.order_key)]


def test_fcfs_ignores_priorities() -> None:
    assert order(FcfsPolicy(), (5, 0.0), (0, 1.0), (1, 2.0)) == [0, 1, 2]


def test_small_priority_values_go_first() -> None:
    assert order(PriorityPolicy(), (5, 0.0), (0, 1.0), (1, 2.0)) == [1, 2, 0]


def test_equal_priorities_go_by_arrival_then_by_order_of_adding() -> None:
    assert order(PriorityPolicy(), (0, 3.0), (0, 1.0), (0, 3.0)) == [1, 0, 2]


def test_waiting_long_enough_outweighs_a_level_of_priority() -> None:
    policy = PriorityPolicy(ageing_s=10.0)
    assert order(policy, (1, 0.0), (0, 9.0)) == [1, 0]
    assert order(policy, (1, 0.0), (0, 11.0)) == [0, 1]


def test_without_ageing_no_wait_is_long_enough() -> None:
    assert order(PriorityPolicy(ageing_s=float("inf")), (1, 0.0), (0, 1e9)) == [1, 0]


def test_a_policy_is_found_by_its_option_value() -> None:
    assert isinstance(make_policy("fcfs"), FcfsPolicy)
    assert isinstance(make_policy("priority"), PriorityPolicy)
    with pytest.raises(ConfigError, match="scheduling_policy='lifo'"):
        make_policy("lifo")
