"""Restarts back off and end; a request that was in two deaths in a row is too dangerous."""

from __future__ import annotations

from octavo.fault.policy import GiveUp, Restart, RestartPolicy, is_too_dangerous, num_request_deaths


def test_the_first_death_is_answered_at_once_and_later_ones_wait_longer_up_to_a_cap():
    policy = RestartPolicy(max_deaths_in_row=9, first_delay_s=0.25, max_delay_s=2.0)
    delays = [policy.decide(number).delay_s for number in range(1, 8)]
    assert delays == [0.0, 0.25, 0.5, 1.0, 2.0, 2.0, 2.0]


def test_after_too_many_deaths_in_a_row_it_gives_up_and_says_why():
    policy = RestartPolicy(max_deaths_in_row=3, stable_after_s=5.0)
    assert policy.decide(2) == Restart(0.25)
    decision = policy.decide(3)
    assert isinstance(decision, GiveUp)
    assert "3 times in a row" in decision.reason


def test_an_engine_that_served_long_enough_ends_the_row():
    policy = RestartPolicy(stable_after_s=5.0)
    assert [policy.is_in_row(lived_s) for lived_s in (0.0, 4.9, 5.0)] == [True, True, False]


def test_a_request_is_too_dangerous_after_two_deaths_in_a_row_only():
    once = num_request_deaths(0, is_in_row=False)
    assert [is_too_dangerous(once), is_too_dangerous(num_request_deaths(once, is_in_row=False))] == [False, False]
    assert is_too_dangerous(num_request_deaths(once, is_in_row=True))
