"""What a plan says: new sequences whole, old ones as differences."""

from __future__ import annotations

from fakes.scheduling import make_world, request

from octavo.proto.plan import StepPlan


def plans_of(prompt: int, *, budget: int = 16, max_tokens: int = 4) -> list[StepPlan]:
    world = make_world(max_num_batched_tokens=budget)
    world.add(request(prompt=prompt, max_tokens=max_tokens))
    world.driver.run()
    return world.driver.plans


def test_a_new_sequence_travels_whole_and_only_once() -> None:
    plans = plans_of(9, budget=4)
    (sequence,) = plans[0].new
    assert sequence.token_ids == request(prompt=9).prompt_token_ids
    assert sequence.num_prompt_tokens == 9
    assert sequence.sampling == request(prompt=9).sampling
    assert [len(plan.new) for plan in plans[1:]] == [0] * (len(plans) - 1)


def test_the_blocks_of_a_chunk_travel_with_it() -> None:
    plans = plans_of(9, budget=4)
    assert [[(group, first, len(ids)) for _, group, first, ids in plan.new_blocks] for plan in plans[:3]] == [
        [(0, 0, 1)],
        [(0, 1, 1)],
        [(0, 2, 1)],
    ]


def test_most_decoding_steps_name_no_block() -> None:
    plans = plans_of(4, max_tokens=5)
    assert [len(plan.new_blocks) for plan in plans] == [1, 1, 0, 0, 0]


def test_a_sequence_that_finds_its_prefix_brings_the_whole_block_table() -> None:
    world = make_world()
    for name in ("cold", "warm"):
        world.add(request(name, prompt=list(range(10))))
        world.driver.run()
    plan = next(plan for plan in world.driver.plans if plan.new and plan.new[0].request_id == "warm")
    assert plan.starts == [8]
    assert [(group, first, len(ids)) for _, group, first, ids in plan.new_blocks] == [(0, 0, 3)]


def test_a_row_is_freed_by_the_plan_after_its_sequence_ended() -> None:
    world = make_world(max_num_seqs=1)
    world.add(request("a", max_tokens=1))
    world.add(request("b", max_tokens=1))
    world.driver.run()
    first, second = world.driver.plans
    assert (first.freed_rows, second.freed_rows) == ([], [0])
    assert second.new[0].row == 0


def test_a_plan_shares_no_list_with_the_scheduler() -> None:
    world = make_world()
    new = world.add(request(prompt=5))
    plan = world.driver.plan()
    assert plan is not None
    world.driver.execute()
    plan.new[0].token_ids.clear()
    for _, _, _, block_ids in plan.new_blocks:
        block_ids.clear()
    world.driver.run()
    world.check_lone(new)


def test_a_resumed_sequence_says_which_prompt_logprobs_were_handed_on() -> None:
    world = make_world(max_num_batched_tokens=4, max_steps_in_flight=1)
    new = world.add(request(prompt=11, sampling={"prompt_logprobs": 1}))
    world.driver.step()
    world.scheduler.reset_prefix_cache(reset_running=True)
    plan = world.driver.plan()
    assert plan is not None
    assert plan.new[0].num_prompt_logprobs_known == 4
    world.driver.run()
    deltas = world.driver.outcomes["r"].deltas
    assert [entry for delta in deltas for entry in delta.prompt_logprobs] == world.lone(new).prompt_logprobs
