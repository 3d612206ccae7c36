"""One text over HTTP with masks: alone, in a crowd, streamed, from a warm cache, and across the death of the engine."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fakes.chat_chunks import add_up, as_said
from fakes.constrained_requests import PERSON
from fakes.live_server import Answer, LiveServer, until
from fakes.process_family import ENGINE, pids_of

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
PREFIX = "The archive of the harbour holds one card for each guest. " * 3
"""Longer than a block: requests share it in the cache."""
TOOL = {"type": "function", "function": {"name": "register", "parameters": PERSON, "strict": True}}
FORM = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
CONSTRAINTS: list[dict[str, Any]] = [
    {"structured_outputs": {"json": PERSON}},
    {"structured_outputs": {"json": PERSON, "disable_any_whitespace": True}, "temperature": 0},
    {"structured_outputs": {"regex": r"([A-Z][a-z]{2,9} ){12}end"}},
    {"structured_outputs": {"choice": ["to the left of the harbour", "to the left", "straight on"]}, "n": 2},
    {"structured_outputs": {"grammar": 'start: term ("+" term){12}\nterm: /[0-9]{1,3}/\n'}},
    {"response_format": {"type": "json_object"}},
    {"response_format": FORM, "frequency_penalty": 0.4, "logit_bias": {"11": 3.0}},
    {},
]


def requests_of(num_requests: int, max_tokens: int) -> list[tuple[str, dict[str, Any]]]:
    """(route, body): each constraint over and over, with other prompts and seeds."""
    made = []
    for number in range(num_requests):
        constraint = CONSTRAINTS[number % len(CONSTRAINTS)]
        body = {"max_tokens": max_tokens, "seed": number, "temperature": 0.9, **constraint}
        if number % 3 == 1:
            made.append((COMPLETIONS, body | {"prompt": f"{PREFIX}Guest {number}: "}))
            continue
        body |= {"messages": [{"role": "user", "content": f"{PREFIX}Write card {number}."}]}
        if "response_format" in constraint and number % 2:
            body = body | {"tools": [TOOL], "tool_choice": "required"}
        made.append((CHAT, body))
    return made


def said(answer: Answer) -> list[Any]:
    """What an answer says, streamed or not, without ids and times."""
    assert answer.status == 200, answer.body
    if "event-stream" not in answer.headers["content-type"]:
        choices = answer.json["choices"]
        return [as_said(choice) if "message" in choice else _completed([choice]) for choice in choices]
    if answer.events[0]["object"] == "chat.completion.chunk":
        return add_up(answer.events)
    choices = [choice for event in answer.events[:-1] for choice in event["choices"]]
    indices = sorted({choice["index"] for choice in choices})
    return [_completed([choice for choice in choices if choice["index"] == index]) for index in indices]


def _completed(choices: list[dict[str, Any]]) -> tuple[str, str]:
    return "".join(choice["text"] for choice in choices), choices[-1]["finish_reason"]


class Crowd:
    """A server and requests whose texts alone, from a cold cache, are known."""

    def __init__(self, server: LiveServer, num_requests: int, max_tokens: int) -> None:
        self.server = server
        self.requests = requests_of(num_requests, max_tokens)
        self.alone = [said(self.ask(request, salt=str(number))) for number, request in enumerate(self.requests)]

    def ask(self, request: tuple[str, dict[str, Any]], *, stream: bool = False, salt: str = "warm") -> Answer:
        """salt: of the prefix cache; requests with different ones share nothing."""
        route, body = request
        return self.server.post(route, body | {"stream": stream, "cache_salt": salt}, timeout_s=300)

    def ask_at_once(self, *, salt: str) -> list[list[Any]]:
        """Every second one streamed."""
        with ThreadPoolExecutor(len(self.requests)) as pool:
            futures = [
                pool.submit(self.ask, request, stream=bool(number % 2), salt=salt)
                for number, request in enumerate(self.requests)
            ]
            return [said(future.result()) for future in futures]

    def check_one_text(self) -> None:
        """Alone and streamed from a warm cache, and all at once, cold and warm."""
        for request, expected in list(zip(self.requests, self.alone, strict=True))[: len(CONSTRAINTS)]:
            assert said(self.ask(request)) == expected
            assert said(self.ask(request, stream=True)) == expected
        assert self.ask_at_once(salt="cold") == self.alone
        assert self.ask_at_once(salt="cold") == self.alone

    def check_replay(self) -> None:
        """The engine is killed once a few of the tokens are there."""
        num_tokens = self.server.metric("vllm:generation_tokens_total")
        assert self.ask_at_once(salt="counted") == self.alone
        num_due = (self.server.metric("vllm:generation_tokens_total") - num_tokens) / 8
        [pid] = pids_of(self.server, ENGINE)
        with ThreadPoolExecutor(1) as pool:
            num_due += self.server.metric("vllm:generation_tokens_total")
            found = pool.submit(self.ask_at_once, salt="killed")
            until(lambda: self.server.metric("vllm:generation_tokens_total") >= num_due, 120, "has begun")
            assert self.server.metric("vllm:num_requests_running") > 0
            os.kill(pid, signal.SIGKILL)
            assert found.result() == self.alone
        assert pids_of(self.server, ENGINE) != [pid]


@pytest.fixture(scope="module")
def small(tiny_folder, tmp_path_factory):
    options = (
        "--max-model-len=512",
        "--num-gpu-blocks-override=400",
        "--max-num-seqs=16",
        "--kernel-backend=reference",
    )
    with LiveServer(tiny_folder, options, {}, tmp_path_factory.mktemp("server")) as server:
        yield Crowd(server, num_requests=16, max_tokens=120)


@pytest.fixture(scope="module")
def large(smollm2_path, tmp_path_factory):
    options = ("--max-model-len=512", "--kv-cache-memory-bytes=512M", "--max-num-seqs=64")
    with LiveServer(smollm2_path, options, {}, tmp_path_factory.mktemp("server")) as server:
        yield Crowd(server, num_requests=64, max_tokens=48)


def test_sixteen_texts_are_the_same_in_every_way(small):
    small.check_one_text()


def test_sixteen_texts_are_the_same_when_the_engine_is_killed(small):
    small.check_replay()


@pytest.mark.slow
@pytest.mark.needs_smollm2
@pytest.mark.timeout(900)
def test_sixty_four_texts_of_smollm2_are_the_same_in_every_way(large):
    large.check_one_text()


@pytest.mark.slow
@pytest.mark.needs_smollm2
@pytest.mark.timeout(900)
def test_sixty_four_texts_of_smollm2_are_the_same_when_the_engine_is_killed(large):
    large.check_replay()
