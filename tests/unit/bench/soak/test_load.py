"""Clients of every kind against a scripted server: what is counted, what is a problem, what pausing means."""

from __future__ import annotations

import asyncio
import random

import pytest

from octavo.bench.serve.http_response import ResponseError
from octavo.bench.soak.exchange import Manner, Request, perform, render
from octavo.bench.soak.load import SoakLoad, find_kinds
from octavo.bench.soak.requests import CANARIES, Kind, RequestMix

OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"
FINE = OK % (41, b'{"choices":[{"text":"same"}],"usage":{}}\n')


class Server:
    """Answers everything with `answer`; `open_requests` are those being answered."""

    def __init__(self, answer=FINE, delay_s=0.0):
        self.answer = answer
        self.delay_s = delay_s
        self.heads = []
        self.open_requests = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            if length:
                await reader.readexactly(int(length[0].split(b":")[1]))
            self.heads.append(head.split(b" ")[1].decode())
            self.open_requests += 1
            await asyncio.sleep(self.delay_s)
            self.open_requests -= 1
            writer.write(self.answer(len(self.heads)) if callable(self.answer) else self.answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


PLAIN = (Kind("plain", "/v1/completions", lambda rng: {"prompt": "a"}, 1),)


def ask(manner=Manner.PATIENT, answer=FINE):
    async def run():
        async with Server(answer) as server:
            request = Request(name="x", data=render("POST", "/v1/completions", b"{}"), manner=manner)
            return await perform(request, server.port, random.Random(0))

    return asyncio.run(run())


def test_a_patient_client_gets_all_of_the_answer():
    answer = ask()
    assert (answer.status, len(answer.body)) == (200, 41)


def test_a_slow_client_gets_all_of_the_answer_too():
    body = b"x" * 5000
    assert ask(Manner.SLOW, OK % (len(body), body)).body == body


@pytest.mark.parametrize("manner", [Manner.HANGS_UP, Manner.IMPATIENT, Manner.ABORTS])
def test_clients_that_go_away_get_nothing(manner):
    assert ask(manner, OK % (100_000, b"x" * 100_000)).status == 0


def test_an_answer_that_breaks_off_is_an_error():
    with pytest.raises(ResponseError, match="unfinished"):
        ask(answer=OK % (100, b"x"))


class OnlyCanaries(RequestMix):
    """Draws the first canary, always."""

    def draw(self, rng):
        return Request(name="canary 0", data=render("POST", "/v1/completions", CANARIES[0]))


def soak(server, during, mix=None):
    async def run():
        async with server:
            load = SoakLoad(server.port, mix or RequestMix("m", PLAIN), concurrency=3, seed=1)
            await load.start()
            found = await during(load)
            await load.stop()
            return load, found

    return asyncio.run(run())


async def a_while(load):
    while sum(load.counts.values()) < 60:
        await asyncio.sleep(0.01)


def test_answers_are_counted_by_kind_and_status():
    load, _ = soak(Server(), a_while)
    assert load.counts["plain 200"] > 5
    assert load.counts["canary 0 200"] >= 1


def test_a_wrong_status_is_one_problem_however_often_it_comes():
    failing = b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"
    load, _ = soak(Server(failing), a_while)
    (line,) = [line for line in load.problems if " x plain: status 500" in line]
    assert int(line.split(" ")[0]) > 1
    assert '"prompt": "a"' in line


def test_a_canary_that_sings_another_song_is_a_problem():
    def answer(number):
        body = b'{"choices":[{"text":"%d"}],"usage":{}}' % number
        return OK % (len(body), body)

    load, _ = soak(Server(answer), a_while, OnlyCanaries("m", PLAIN))
    assert any("canary" in line and "at first" in line for line in load.problems)


def test_an_error_event_in_a_stream_is_a_problem():
    body = b'data: {"error": {"message": "no"}}\n\n'
    load, _ = soak(Server(OK % (len(body), body)), a_while)
    assert any("an error in the stream" in line for line in load.problems)


def test_after_a_pause_nothing_is_under_way_until_it_is_resumed():
    server = Server(delay_s=0.02)

    async def during(load):
        await more_than(3)
        await load.pause()
        before, num_open = len(server.heads), server.open_requests
        await asyncio.sleep(0.1)
        still = (len(server.heads) - before, num_open)
        load.resume()
        await more_than(before)
        return still

    async def more_than(num_requests):
        while len(server.heads) <= num_requests:
            await asyncio.sleep(0.01)

    _, found = soak(server, during)
    assert found == (0, 0)


def test_a_pause_right_after_a_resume_finds_nothing_under_way():
    server = Server(delay_s=0.02)

    async def during(load):
        found = []
        for _ in range(5):
            await load.pause()
            load.resume()
            await load.pause()
            before = len(server.heads)
            await asyncio.sleep(0.02)
            found.append(len(server.heads) - before)
            load.resume()
        return found

    _, found = soak(server, during)
    assert found == [0] * 5


def test_kinds_that_the_server_refuses_or_nobody_wants_are_left_out():
    refusing = b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"

    async def run():
        async with Server(refusing) as server:
            return await find_kinds(server.port, "m", ["tools", "chat"])

    kinds, missing = asyncio.run(run())
    assert {kind.name for kind in kinds} == {"completions", "tokenize", "detokenize"}
    assert set(missing) == {"structured", "json_schema", "auto_tools", "responses", "messages"}
