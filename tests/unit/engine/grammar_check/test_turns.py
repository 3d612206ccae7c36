"""Turns go round by hosts, and by connections within a host."""

from __future__ import annotations

import asyncio

import pytest

from octavo.engine.grammar_check.turns import FairTurns


async def order_of(turns: FairTurns, askers: list[tuple[str, str]]) -> list[int]:
    """The order in which those who come while the turn is taken get it."""
    served: list[int] = []

    async def one(idx: int) -> None:
        await turns.acquire(askers[idx])
        served.append(idx)
        turns.release()

    await turns.acquire(("first", "0"))
    tasks = [asyncio.create_task(one(idx)) for idx in range(len(askers))]
    await asyncio.sleep(0)
    turns.release()
    await asyncio.gather(*tasks)
    return served


@pytest.mark.parametrize(
    ("askers", "served"),
    [
        ([("a", "1")] * 3, [0, 1, 2]),
        ([("a", "1"), ("a", "1"), ("a", "1"), ("b", "1")], [0, 3, 1, 2]),
        ([("a", "1"), ("a", "1"), ("a", "2"), ("a", "1")], [0, 2, 1, 3]),
        ([("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "1")], [0, 3, 1, 4, 2]),
    ],
)
def test_turns_go_round(askers: list[tuple[str, str]], served: list[int]) -> None:
    turns = FairTurns()
    assert asyncio.run(order_of(turns, askers)) == served
    assert not turns._waiting
    assert not turns._is_taken


@pytest.mark.parametrize("is_given", [False, True])
def test_who_gives_up_keeps_nobody_waiting(is_given: bool) -> None:
    async def scenario() -> None:
        turns = FairTurns()
        await turns.acquire(("a", "1"))
        gone = asyncio.create_task(turns.acquire(("b", "1")))
        stays = asyncio.create_task(turns.acquire(("c", "1")))
        await asyncio.sleep(0)
        if is_given:
            turns.release()
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        if not is_given:
            turns.release()
        await asyncio.wait_for(stays, 1)
        turns.release()
        assert not turns._waiting
        assert not turns._is_taken

    asyncio.run(scenario())
