"""The HTTP client against a real socket, on loopback."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from fakes.sse_server import Script, serving

from octavo.base.clock import MonotonicClock
from octavo.base.errors import ConfigError
from octavo.bench.serve.client import ExchangeError, HttpClient, Target

CERTIFICATE = Path(__file__).parents[3] / "data" / "tls" / "localhost.pem"


class Body:
    def __init__(self):
        self.data = b""

    def on_body(self, status, body, now_s):
        self.data += body


class Refuses:
    def on_body(self, status, body, now_s):
        raise ExchangeError("enough")


def make_client(url, *, insecure=False):
    return HttpClient(Target.from_url(url, headers={}, insecure=insecure), MonotonicClock())


def post(client, path="/v1/completions"):
    return client.target.render("POST", path, b"{}", {})


async def exchange(client, sink=None, timeout_s=5.0):
    sink = sink or Body()
    reader = await client.exchange(post(client), sink, timeout_s=timeout_s)
    return reader.status, getattr(sink, "data", b"")


@pytest.mark.parametrize("piece_bytes", [None, 1, 7])
def test_a_stream_is_read_whole_however_it_is_sent(piece_bytes):
    async def run():
        async with serving(Script(num_tokens=2, piece_bytes=piece_bytes)) as url:
            client = make_client(url)
            status, body = await exchange(client)
            client.close()
            return status, body

    status, body = asyncio.run(run())
    assert status == 200
    assert body.startswith(b"data: {")
    assert body.endswith(b"data: [DONE]\n\n")
    assert body.count(b"\n\n") == 4


@pytest.mark.parametrize(("keeps_alive", "num_connections"), [(True, 1), (False, 3)])
def test_connections_are_kept_when_the_server_keeps_them(keeps_alive, num_connections):
    script = Script(keeps_alive=keeps_alive)

    async def run():
        async with serving(script) as url:
            client = make_client(url)
            for _ in range(3):
                await exchange(client)
            client.close()

    asyncio.run(run())
    assert script.num_connections == num_connections
    assert len(script.requests) == 3


def test_a_kept_connection_that_was_closed_meanwhile_is_replaced():
    answers = []

    async def answer_once(reader, writer):
        await reader.readuntil(b"\r\n\r\n{}")
        answers.append(1)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        if len(answers) == 1:
            # The next request meets a connection that closes without an answer.
            await reader.readuntil(b"\r\n\r\n{}")
        writer.close()

    async def run():
        server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
        async with server:
            client = make_client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            found = [await exchange(client), await exchange(client)]
            client.close()
            return found

    assert asyncio.run(run()) == [(200, b"ok")] * 2


def test_a_new_connection_that_closes_without_an_answer_is_an_error():
    async def hang_up(reader, writer):
        writer.close()

    async def run():
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        async with server:
            await exchange(make_client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))

    with pytest.raises(ExchangeError, match=r"without an answer|reset"):
        asyncio.run(run())


def test_a_connection_that_breaks_off_names_how_far_it_came():
    async def run():
        async with serving(Script(break_after=1)) as url:
            await exchange(make_client(url))

    with pytest.raises(ExchangeError, match="unfinished response"):
        asyncio.run(run())


def test_a_server_that_does_not_answer_in_time_is_given_up():
    async def run():
        async with serving(Script(hangs=True)) as url:
            await exchange(make_client(url), timeout_s=0.05)

    with pytest.raises(ExchangeError, match=r"within 0\.05 s"):
        asyncio.run(run())


def test_no_server_is_an_error_with_its_address():
    async def run():
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        await exchange(make_client(f"http://127.0.0.1:{port}"))

    with pytest.raises(ExchangeError, match=r"cannot connect to 127\.0\.0\.1"):
        asyncio.run(run())


def test_a_sink_may_end_the_exchange():
    async def run():
        async with serving(Script()) as url:
            await exchange(make_client(url), Refuses())

    with pytest.raises(ExchangeError, match="enough"):
        asyncio.run(run())


def test_a_cancelled_exchange_closes_its_connection():
    script = Script(num_tokens=1000, gap_s=0.01)

    async def run():
        async with serving(script) as url:
            client = make_client(url)
            task = asyncio.create_task(exchange(client))
            while not script.num_open:
                await asyncio.sleep(0.005)
            task.cancel()
            for _ in range(100):
                if not script.num_open:
                    return
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert script.num_open == 0


def server_tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def test_tls_is_spoken_with_any_certificate_when_asked():
    async def run():
        async with serving(Script(ssl=server_tls())) as url:
            client = make_client(url, insecure=True)
            found = await exchange(client)
            client.close()
            await asyncio.sleep(0.01)
            return found

    assert asyncio.run(run())[0] == 200


def test_a_certificate_that_nobody_vouches_for_is_refused():
    async def run():
        async with serving(Script(ssl=server_tls())) as url:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
            await exchange(make_client(url))

    with pytest.raises(ExchangeError, match=r"(?i)certificate"):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "host", "port", "prefix"),
    [
        ("http://a.example", "a.example", 80, ""),
        ("https://a.example/base/", "a.example", 443, "/base"),
        ("http://[::1]:9000", "::1", 9000, ""),
    ],
)
def test_urls_are_taken_apart(url, host, port, prefix):
    target = Target.from_url(url, headers={})
    assert (target.host, target.port, target.path_prefix, target.tls is not None) == (
        host,
        port,
        prefix,
        url.startswith("https"),
    )


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a", "http://", "http://a:x", "http://a:70000"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ConfigError, match="--base-url"):
        Target.from_url(url, headers={})


@pytest.mark.parametrize("header", [{"a": "b\r\nc: d"}, {"a b": "c"}, {"": "c"}, {"a": "\u00e9"}])
def test_a_header_that_cannot_be_sent_is_refused(header):
    with pytest.raises(ConfigError, match="--header"):
        Target.from_url("http://a", headers=header)


def test_a_request_names_host_length_and_headers():
    target = Target.from_url("http://[::1]:9000/x", headers={"Authorization": "Bearer k"})
    assert target.render("POST", "/v1", b"{}", {"x-request-id": "r"}) == (
        b"POST /x/v1 HTTP/1.1\r\nHost: [::1]:9000\r\nAccept: */*\r\nAuthorization: Bearer k\r\nx-request-id: r\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert b"Content-Length" not in target.render("GET", "/", b"", {})
