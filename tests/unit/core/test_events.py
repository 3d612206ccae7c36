"""What the scheduler counts is right at once, with no step needed."""

from __future__ import annotations

from fakes.scheduling import hybrid, make_world, request


def test_mass_aborts_show_at_once():
    world = make_world()
    requests = [world.add(request(f"r{i}")) for i in range(8)]
    world.driver.plan()
    world.driver.abort(*(new.request_id for new in requests))
    stats = world.scheduler.stats()
    assert (stats.num_running, stats.num_waiting, stats.kv_usage) == (0, 0, 0.0)
    assert stats.num_finished == {"abort": 8}


def test_the_position_in_the_queue_is_that_at_arrival():
    world = make_world()
    for i in range(4):
        world.add(request(f"r{i}"))
    positions = world.scheduler.stats().queue_positions
    assert positions.counts[:4] == [1, 1, 1, 1]  # 0, 1, 2, then 3 in the bucket up to 5
    assert positions.total == 0 + 1 + 2 + 3


def test_prompt_tokens_are_those_computed_and_not_those_generated_or_cached():
    world = make_world()
    world.add(request("a", list(range(9)), max_tokens=4))
    world.driver.run()
    assert world.scheduler.stats().num_prompt_tokens == 9
    world.add(request("b", list(range(9)), max_tokens=4))
    world.driver.run()
    stats = world.scheduler.stats()
    assert stats.num_prompt_tokens == 9 + 1  # two blocks of four are cached
    assert stats.num_scheduled_tokens == 9 + 3 + 1 + 3


def test_cached_tokens_that_could_not_be_used_are_counted_by_reason():
    world = make_world()
    for name in ("a", "b"):
        world.add(request(name, list(range(8)), max_tokens=1))
        world.driver.run()
    stats = world.scheduler.stats()
    assert stats.prefix_hits == 4
    assert stats.prefix_losses == {"last_token": 4}


def test_nothing_is_lost_where_nothing_was_cached():
    world = make_world(groups=hybrid(8))
    world.add(request("a"))
    world.driver.run()
    assert world.scheduler.stats().prefix_losses == {}
