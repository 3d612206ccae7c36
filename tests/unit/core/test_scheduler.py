"""The life of requests: ends, aborts, deadlines, faults, replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fakes.scheduling import World, end_of, make_world, next_result, request

from octavo.base.errors import InvariantError
from octavo.core.policy import FcfsPolicy, Readiness
from octavo.core.request import Request


def text_of_error(world: World, request_id: str) -> str:
    error = end_of(world, request_id).error
    assert error is not None
    assert error.kind == "internal"
    return error.text


def test_a_request_runs_to_its_length_and_leaves_nothing_behind() -> None:
    world = make_world()
    new = world.add(request())
    world.driver.run()
    world.check_lone(new)
    assert end_of(world).finish_reason == "length"
    world.check_empty()


def test_without_requests_there_is_nothing_to_plan() -> None:
    world = make_world()
    assert world.scheduler.schedule(0.0) is None
    assert not world.scheduler.has_work


@pytest.mark.parametrize("field", ["eos_token_ids", "stop_token_ids"])
def test_an_end_or_stop_token_ends_the_text(field: str) -> None:
    world = make_world()
    third = world.lone(request(max_tokens=5)).token_ids[2]
    is_eos = field == "eos_token_ids"
    new = request(
        max_tokens=5, eos_token_ids=(third,) if is_eos else (), sampling={} if is_eos else {"stop_token_ids": [third]}
    )
    world.add(new)
    world.driver.run()
    assert world.text("r")[-1] == third
    assert end_of(world).finish_reason == "stop"
    assert end_of(world).stop_reason == (None if is_eos else third)


def test_answers_carry_the_client_and_its_attempt() -> None:
    world = make_world()
    world.add(request(epoch=3, client_idx=2))
    world.driver.run()
    assert {(delta.epoch, delta.client_idx) for delta in world.driver.outcomes["r"].deltas} == {(3, 2)}


def test_cached_tokens_are_those_of_the_first_admission() -> None:
    world = make_world()
    prompt = list(range(12))
    world.add(request("cold", prompt=prompt))
    world.driver.run()
    world.add(request("warm", prompt=prompt))
    world.driver.run()
    assert end_of(world, "cold").num_cached_tokens == 0
    assert end_of(world, "warm").num_cached_tokens == 8
    assert world.scheduler.stats().prefix_hits == 8
    assert world.scheduler.stats().prefix_queries == 24


def test_one_token_of_a_fully_cached_prompt_is_still_computed() -> None:
    world = make_world()
    world.add(request("cold", prompt=list(range(8))))
    world.driver.run()
    new = world.add(request("warm", prompt=list(range(8))))
    plan = world.driver.plan()
    assert plan is not None
    assert plan.num_tokens == [4]
    world.driver.run()
    world.check_lone(new)


@pytest.mark.parametrize("sampling", [{"prompt_logprobs": 1}, {"skip_reading_prefix_cache": True}])
def test_a_request_that_does_not_read_the_prefix_cache_still_fills_it(sampling: dict[str, Any]) -> None:
    world = make_world()
    prompt = list(range(12))
    for name in ("first", "second"):
        world.add(request(name, prompt=prompt, sampling=sampling))
        world.driver.run()
    world.add(request("reader", prompt=prompt))
    world.driver.run()
    assert [end_of(world, name).num_cached_tokens for name in ("first", "second", "reader")] == [0, 0, 8]


@pytest.mark.parametrize("budget", [4, 5, 16])
def test_prompt_logprobs_are_the_same_for_every_chunk_size(budget: int) -> None:
    world = make_world(max_num_batched_tokens=budget)
    new = world.add(request(prompt=11, sampling={"prompt_logprobs": 1}))
    world.driver.run()
    deltas = world.driver.outcomes["r"].deltas
    assert [entry for delta in deltas for entry in delta.prompt_logprobs] == world.lone(new).prompt_logprobs


def test_salts_keep_requests_apart() -> None:
    world = make_world()
    requests = [
        world.add(request(name, prompt=list(range(12)), cache_salt=salt)) for name, salt in (("a", "x"), ("b", "y"))
    ]
    world.driver.run()
    world.check_lone(*requests)
    assert world.scheduler.stats().prefix_hits == 0


# Aborts and deadlines.


@pytest.mark.parametrize("num_steps", [0, 1, 2, 4])
def test_a_request_can_be_aborted_at_any_time(num_steps: int) -> None:
    world = make_world(max_num_batched_tokens=4)
    world.add(request(prompt=7, max_tokens=9))
    for _ in range(num_steps):
        world.driver.step()
    world.driver.plan()
    world.driver.abort("r")
    assert end_of(world).finish_reason == "abort"
    world.driver.run()
    world.check_empty()


def test_aborting_what_is_unknown_or_over_does_nothing() -> None:
    world = make_world()
    world.add(request())
    world.driver.run()
    assert world.scheduler.abort(["r", "never seen"]) == []


def test_aborting_an_id_twice_ends_it_once() -> None:
    world = make_world()
    world.add(request())
    assert len(world.scheduler.abort(["r", "r"])) == 1


def test_an_id_can_be_used_again_after_its_end_though_a_step_of_it_is_in_flight() -> None:
    world = make_world(max_steps_in_flight=2)
    world.add(request(prompt=5))
    world.driver.plan()
    world.driver.abort("r")
    new = world.add(request(prompt=6))
    world.driver.run()
    world.check_lone(new)


@pytest.mark.parametrize("is_running", [False, True])
def test_past_its_deadline_a_request_ends_with_an_error(is_running: bool) -> None:
    world = make_world()
    world.add(request(deadline_s=10.0, max_tokens=20))
    if is_running:
        world.driver.step()
    world.driver.now_s = 12.5
    world.driver.plan()
    assert end_of(world).finish_reason == "error"
    error = end_of(world).error
    assert error is not None
    assert error.text.startswith("deadline passed 2.500 s ago")
    world.driver.run()
    world.check_empty()


# Replay.


def test_a_replayed_request_continues_where_it_was() -> None:
    world = make_world()
    whole = world.lone(request(max_tokens=6)).token_ids
    world.add(request(max_tokens=6, output_token_ids=whole[:4]))
    world.driver.run()
    assert world.text("r") == whole[4:]


def test_replayed_output_counts_towards_min_tokens() -> None:
    world = make_world()
    whole = world.lone(request(max_tokens=6, sampling={"min_tokens": 3})).token_ids
    eos = (whole[3],)
    world.add(request(max_tokens=6, sampling={"min_tokens": 3}, eos_token_ids=eos, output_token_ids=whole[:3]))
    world.driver.run()
    assert world.text("r") == whole[3:4]
    assert end_of(world).finish_reason == "stop"


def test_a_replay_that_was_complete_ends_at_once() -> None:
    world = make_world()
    world.add(request(max_tokens=2, output_token_ids=[1, 2]))
    world.driver.plan()
    assert end_of(world).finish_reason == "length"
    assert world.text("r") == []
    world.check_empty()


# Faults of one request.


UNHASHABLE = 1 << 200
"""A token id that the prefix cache cannot digest."""


@pytest.mark.parametrize("is_running", [False, True])
def test_an_exception_in_planning_a_request_ends_only_that_request(is_running: bool) -> None:
    world = make_world(max_num_batched_tokens=12)
    good = world.add(request("good", prompt=3, max_tokens=6))
    # Reading the cache digests the whole prompt at admission; not reading it, each block when its turn comes.
    world.add(request("bad", prompt=[1] * 15 + [UNHASHABLE], sampling={"skip_reading_prefix_cache": is_running}))
    other = world.add(request("other", prompt=9, max_tokens=6))
    world.driver.run()
    world.check_lone(good, other)
    assert (world.driver.outcomes["bad"].deltas[0].scheduled_s is not None) is is_running
    assert text_of_error(world, "bad")
    assert world.scheduler.stats().num_faults == 1
    world.check_empty()


def test_an_exception_in_finishing_a_request_ends_only_that_request() -> None:
    world = make_world()
    good = world.add(request("good"))
    world.add(request("bad", eos_token_ids=(1,)))
    plan = world.scheduler.schedule(0.0)
    assert plan is not None
    result = world.model.execute(plan)
    result.token_ids[1] = [[]]  # type: ignore[list-item]
    world.driver.take(world.scheduler.update(result, 0.0))
    world.driver.run()
    world.check_lone(good)
    assert "unhashable" in text_of_error(world, "bad")
    assert world.scheduler.stats().num_faults == 1
    world.check_empty()


class BrokenPolicy(FcfsPolicy):
    def victim_idx(self, candidates: Sequence[Request]) -> int:
        raise RuntimeError("planted")


def test_a_policy_that_raises_ends_the_request_it_was_asked_for() -> None:
    world = make_world(num_blocks=6, max_num_batched_tokens=32, policy=BrokenPolicy())
    world.add(request("bad", prompt=4, max_tokens=13))
    good = world.add(request("good", prompt=4, max_tokens=13))
    world.driver.run()
    world.check_lone(good)
    assert "planted" in text_of_error(world, "bad")
    world.check_empty()


def test_a_readiness_check_that_raises_ends_its_request() -> None:
    def is_ready(one: Request) -> Readiness:
        if one.request_id == "bad":
            raise ValueError("the grammar does not compile")
        return Readiness.READY

    world = make_world(is_ready=is_ready)
    world.add(request("bad"))
    good = world.add(request("good"))
    world.driver.run()
    world.check_lone(good)
    assert "the grammar does not compile" in text_of_error(world, "bad")


def test_a_wrong_number_of_samples_ends_that_request_only() -> None:
    world = make_world()
    world.add(request("bad"))
    good = world.add(request("good"))
    plan = world.scheduler.schedule(0.0)
    assert plan is not None
    result = world.model.execute(plan)
    result.token_ids[0] = []
    world.driver.take(world.scheduler.update(result, 0.0))
    world.driver.run()
    world.check_lone(good)
    assert end_of(world, "bad").finish_reason == "error"


def test_a_result_out_of_order_is_our_bug() -> None:
    world = make_world(max_steps_in_flight=2)
    world.add(request(prompt=20))
    first = next_result(world)
    second = next_result(world)
    with pytest.raises(InvariantError, match="out of order"):
        world.scheduler.update(second, 0.0)
    world.scheduler.update(first, 0.0)


def test_stats_count_what_happened() -> None:
    world = make_world()
    world.add(request("a", prompt=5, max_tokens=4))
    world.add(request("b", prompt=5, max_tokens=4))
    world.driver.step()
    stats = world.scheduler.stats()
    assert (stats.num_running, stats.num_waiting, stats.num_steps, stats.num_scheduled_tokens) == (2, 0, 1, 10)
    assert stats.kv_usage == 4 / 32
    world.driver.run()
    assert world.scheduler.stats().num_finished == {"length": 2}
