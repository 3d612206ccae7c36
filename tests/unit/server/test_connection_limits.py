"""What a connection may cost: bytes, pieces, time, memory, and how many there may be."""

import asyncio
import time

from fakes.http_server import GET, ask, chunked, code_of, connected, echo, read_answer, run, serving


def test_headers_are_bounded_in_bytes():
    async def test():
        async with serving(echo, max_header_bytes=1024) as (_, port):
            used = len("/") + sum(len(name) + len(value) + 4 for name, value in (("Host", "x"), ("X", "")))
            for extra, expected in ((1024 - used, 200), (1024 - used + 1, 431)):
                data = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * extra + b"\r\n\r\n"
                # In two parts, so that no part alone is over the limit.
                async with connected(port) as (reader, writer):
                    writer.write(data[:100])
                    await writer.drain()
                    writer.write(data[100:])
                    assert (await read_answer(reader))[0] == expected

    run(test())


def test_headers_that_never_end_are_refused_before_they_do():
    async def test():
        async with serving(echo, max_header_bytes=1024) as (_, port):
            status, _, body = await ask(port, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4096)
            assert (status, code_of(body)) == (431, "headers_too_large")

    run(test())


def test_headers_are_bounded_in_number():
    async def test():
        async with serving(echo, max_header_count=8) as (_, port):
            for count, expected in ((7, 200), (8, 431)):
                extra = b"".join(b"X-%d: y\r\n" % i for i in range(count))
                assert (await ask(port, b"GET / HTTP/1.1\r\nHost: x\r\n" + extra + b"\r\n"))[0] == expected

    run(test())


def test_chunks_are_bounded_in_number():
    async def test():
        async with serving(echo, max_body_chunks=9) as (_, port):
            # The empty chunk at the end is one of them.
            assert (await ask(port, chunked(*[b"x"] * 8)))[2] == b"x" * 8
            status, _, body = await ask(port, chunked(*[b"x"] * 9))
            assert (status, code_of(body)) == (413, "content_too_large")

    run(test())


def test_a_slow_header_is_refused():
    async def test():
        async with serving(echo, read_timeout_s=0.1) as (_, port), connected(port) as (reader, writer):
            writer.write(b"GET / HT")
            status, _, body = await read_answer(reader)
            assert (status, code_of(body)) == (408, "request_timeout")

    run(test())


def test_a_slow_body_is_refused_however_steadily_it_drips():
    async def test():
        async with serving(echo, read_timeout_s=0.2) as (_, port), connected(port) as (reader, writer):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
            answer = asyncio.create_task(read_answer(reader))
            for _ in range(20):
                if answer.done():
                    break
                writer.write(b"x")
                await asyncio.sleep(0.03)
            assert (await answer)[0] == 408

    run(test())


def test_a_body_earns_time_by_its_size():
    async def test():
        async with serving(echo, read_timeout_s=0.1) as (_, port), connected(port) as (reader, writer):
            body = b"x" * (1 << 19)
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1) + body)
            await asyncio.sleep(0.3)
            writer.write(b"y")
            assert (await read_answer(reader))[2] == body + b"y"

    run(test())


def test_a_silent_connection_is_closed_without_an_answer():
    async def test():
        async with serving(echo, read_timeout_s=0.1) as (_, port), connected(port) as (reader, _):
            assert await reader.read() == b""

    run(test())


def test_an_idle_connection_is_closed_after_its_keep_alive():
    async def test():
        async with serving(echo, keep_alive_timeout_s=0.1) as (server, port), connected(port) as (reader, writer):
            writer.write(GET)
            await read_answer(reader)
            started = time.monotonic()
            assert await reader.read() == b""
            assert 0.05 < time.monotonic() - started < 1
            assert server.num_connections == 0

    run(test())


def test_connections_are_bounded_in_number():
    async def test():
        async with serving(echo, max_connections=2) as (_, port), connected(port), connected(port) as (_, second):
            await asyncio.sleep(0.05)
            async with connected(port) as (reader, _):
                status, headers, _ = await read_answer(reader)
                assert (status, headers["retry-after"]) == (503, "1")
            second.close()
            await asyncio.sleep(0.05)
            assert (await ask(port, GET))[0] == 200

    run(test())


def test_a_reader_that_stalls_is_cut_and_memory_stays_bounded():
    async def test():
        sent, ended = 0, asyncio.Event()

        async def floods(scope, receive, send):
            nonlocal sent
            try:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                while True:
                    await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                    sent += 65536
            finally:
                ended.set()

        async with serving(floods, write_timeout_s=0.3) as (_, port), connected(port) as (reader, writer):
            writer.get_extra_info("socket").setsockopt(1, 8, 4096)
            reader._transport.pause_reading()
            writer.write(GET)
            await asyncio.wait_for(ended.wait(), 5)
            assert sent < 16 << 20

    run(test())
