import asyncio

import pytest
from fakes.http_server import GET, ask, chunked, code_of, connected, echo, post, read_answer, run, serving

from octavo.server.body import BodyLimits, read_body
from octavo.server.errors import ApiError


def test_a_request_is_answered_and_the_connection_is_used_again():
    async def test():
        async with serving(echo) as (_, port), connected(port) as (reader, writer):
            for body in (b"one", b"two"):
                writer.write(post(body))
                assert (await read_answer(reader))[2] == body

    run(test())


def test_pipelined_requests_are_answered_in_order():
    async def test():
        async with serving(echo) as (_, port), connected(port) as (reader, writer):
            writer.write(post(b"one") + post(b"two") + GET + post(b"three"))
            assert [(await read_answer(reader))[2] for _ in range(4)] == [b"one", b"two", b"GET", b"three"]

    run(test())


def test_a_fault_behind_a_good_request_closes_after_its_answer():
    async def test():
        async with serving(echo) as (_, port), connected(port) as (reader, writer):
            writer.write(post(b"good") + b"nonsense\r\n\r\n")
            status, headers, body = await read_answer(reader)
            assert (status, body, headers["connection"]) == (200, b"good", "close")
            assert await reader.read() == b""

    run(test())


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil/?\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\x01b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_closed(data):
    async def test():
        async with serving(echo) as (_, port), connected(port) as (reader, writer):
            writer.write(data)
            status, headers, body = await read_answer(reader)
            assert (status, code_of(body), headers["connection"]) == (400, "invalid_request", "close")
            assert await reader.read() == b""

    run(test())


def test_a_client_that_leaves_is_noticed_also_behind_a_pipelined_request():
    async def test():
        gone = asyncio.Event()

        async def waits(scope, receive, send):
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        for data in (GET, GET + GET):
            gone.clear()
            async with serving(waits) as (_, port):
                async with connected(port) as (_, writer):
                    writer.write(data)
                    await asyncio.sleep(0.05)
                await asyncio.wait_for(gone.wait(), 1)

    run(test())


def test_an_answer_that_breaks_off_does_not_look_whole():
    async def test():
        async def breaks(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
            raise RuntimeError

        async with serving(breaks) as (_, port):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await ask(port, GET)

    run(test())


def test_an_early_answer_to_a_large_body_reaches_the_client():
    async def test():
        async def refuses(scope, receive, send):
            await send({"type": "http.response.start", "status": 413, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": b"no"})

        async with serving(refuses) as (_, port), connected(port) as (reader, writer):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 2_000_000)
            status, headers, body = await read_answer(reader)
            assert (status, headers["connection"], body) == (413, "close", b"no")

    run(test())


def test_an_upgrade_is_not_taken_but_the_request_is_answered():
    async def test():
        async with serving(echo) as (_, port):
            status, headers, body = await ask(port, post(b"hello", "Connection: Upgrade", "Upgrade: h2c"))
            assert (status, body) == (200, b"hello")
            assert "upgrade" not in headers

    run(test())


def test_a_client_that_waits_for_100_is_told_to_go_on():
    async def test():
        async with serving(echo) as (_, port), connected(port) as (reader, writer):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"ok")
            assert (await read_answer(reader))[2] == b"ok"

    run(test())


def test_http_1_0_is_answered_and_closed():
    async def test():
        async with serving(echo) as (_, port), connected(port) as (reader, writer):
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            status, headers, body = await read_answer(reader)
            assert (status, headers["connection"], body) == (200, "close", b"GET")
            assert await reader.read() == b""

    run(test())


def test_head_has_the_length_and_no_body():
    async def test():
        async with serving(echo) as (_, port), connected(port) as (reader, writer):
            writer.write(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"content-length: 4" in head
            assert (await read_answer(reader))[2] == b"GET"

    run(test())


def test_the_path_is_what_the_client_wrote():
    async def test():
        async with serving(echo) as (_, port):
            for target, path in ((b"/v1/%63", "/v1/%63"), (b"//v1?q=/x", "//v1"), (b"http://evil/v1", "/v1")):
                _, headers, _ = await ask(port, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")
                assert headers["x-path"] == path

    run(test())


def test_draining_closes_idle_connections_and_ends_each_answer_with_close():
    async def test():
        release = asyncio.Event()

        async def slow(scope, receive, send):
            if scope["raw_path"] == b"/slow":
                await release.wait()
            await echo(scope, receive, send)

        async with (
            serving(slow) as (server, port),
            connected(port) as (idle, idle_writer),
            connected(port) as (reader, w),
        ):
            idle_writer.write(GET)
            await read_answer(idle)
            w.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.sleep(0.05)
            server.begin_drain()
            assert await idle.read() == b""
            release.set()
            status, headers, _ = await read_answer(reader)
            assert (status, headers["connection"]) == (200, "close")
            assert (await ask(port, GET))[1]["connection"] == "close"

    run(test())


@pytest.mark.parametrize(
    ("data", "status", "target"),
    [
        (b"nonsense\r\n\r\n", 400, ""),
        (b"GET /a?b HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "/a?b"),
        (b"GET /a HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4096, 431, "/a"),
        (b"GET /slow HT", 408, "/slow"),
        (post(b"good") + b"nonsense\r\n\r\n", 400, ""),
    ],
)
def test_what_is_refused_before_the_application_is_told_once(data, status, target):
    async def test():
        told = []

        def note(error, target, seconds):
            told.append((error.status, target))
            assert 0 <= seconds < 5

        async with serving(echo, on_refusal=note, max_header_bytes=1024, read_timeout_s=0.1) as (_, port):
            await ask(port, data)
            while not told:
                await asyncio.sleep(0.01)
        assert told == [(status, target)]

    run(test())


@pytest.mark.parametrize(
    ("data", "status"),
    [(chunked(*[b"x"] * 9), 413), (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx", 408)],
)
def test_a_request_that_runs_is_refused_by_its_own_application(data, status):
    async def test():
        seen = []

        async def app(scope, receive, send):
            try:
                await read_body(receive, None, BodyLimits())
            except ApiError as error:
                seen.append(error.status)
                await send({"type": "http.response.start", "status": error.status, "headers": []})
                await send({"type": "http.response.body", "body": b"mine"})

        told = []
        async with serving(app, on_refusal=lambda *what: told.append(what), max_body_chunks=9, read_timeout_s=0.1) as (
            _,
            port,
        ):
            answer, headers, body = await ask(port, data)
        assert (answer, headers["connection"], body) == (status, "close", b"mine")
        assert (seen, told) == ([status], [])

    run(test())
