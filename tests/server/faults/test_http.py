"""HTTP itself: sizes, slowness, keys, ids, routes, framing."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import os
import re
import threading
import time

from fakes.bad_requests import CHAT, COMPLETIONS
from fakes.fault_suite import KEY, MIB, leave
from fakes.live_server import read_all, until

CHUNKED = "HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_s30_a_body_at_the_limit_passes_and_one_byte_more_does_not(suite):
    limit = 16 * MIB
    with suite.case():
        for route in (COMPLETIONS, CHAT, "/tokenize", "/detokenize"):
            start = b'{"prompt":"a","pad":"'
            body = start + b"x" * (limit - len(start) - 2) + b'"}'
            assert suite.server.post(route, body).status != 413
            over = suite.server.post(route, body + b" ")
            assert (over.status, over.error["code"]) == (413, "content_too_large")
            head = f"POST {route} {CHUNKED}"
            chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
            assert suite.server.raw(head.encode() + chunk * 17).split(b" ")[1] == b"413"


def test_s32_a_body_of_too_many_chunks_is_refused(suite):
    with suite.case():
        head = f"POST /v1/completions {CHUNKED}"
        answer = suite.server.raw(head.encode() + b"1\r\n \r\n" * 65537 + b"0\r\n\r\n", timeout_s=30)
        assert answer.split(b" ")[1] == b"413"


def num_refused(server):
    lines = server.get("/metrics").body.decode().splitlines()
    found = [line for line in lines if line.startswith("http_requests_total{") and 'status="4xx"' in line]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


def test_refused_connections_are_one_line_and_one_count_each_with_their_status(suite):
    chunks = f"POST /v1/completions {CHUNKED}".encode() + b"1\r\n \r\n" * 65537
    cases = (
        (b"nonsense\r\n\r\n", 400, "invalid_request"),
        (b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 17_000 + b"\r\n\r\n", 431, "headers_too_large"),
        (chunks, 413, "content_too_large"),
    )
    suite.check_idle()  # the line of a request is written after its answer: those of before are in the log now
    for data, status, code in cases:
        log_start, count = len(suite.server.log), num_refused(suite.server)
        assert suite.server.raw(data, timeout_s=30).split(b" ", 2)[1] == str(status).encode()
        until(lambda n=count: num_refused(suite.server) == n + 1, 5.0, f"{status} was counted")
        lines = suite.server.log[log_start:].splitlines()
        assert len([line for line in lines if f"status={status} " in line and f"error={code}" in line]) == 1, lines
        assert "status=499" not in suite.server.log[log_start:]


def test_s33_compressed_bodies_are_refused_unread(suite):
    with suite.case():
        bomb = gzip.compress(b" " * (64 * MIB))
        for body in (bomb, bomb[:100], b"not gzip"):
            answer = suite.server.post(COMPLETIONS, body, {"content-encoding": "gzip"})
            assert (answer.status, answer.error["code"]) == (415, "unsupported_media_type")


def test_s34_headers_have_limits(suite):
    with suite.case():
        for head, status in (
            (b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * MIB + b"\r\n\r\n", b"431"),
            (b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 20_000 + b"\r\n", b"431"),
            (b"GET /" + b"a" * MIB + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"431"),
            (b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", b"400"),
            (b"GET /health HTTP/1.1\r\nHost: x\r\nX\x01: a\r\n\r\n", b"400"),
        ):
            assert suite.server.raw(head).split(b" ", 2)[1] == status


def test_s35_slow_clients_are_closed_and_others_served(guarded):
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(guarded.connection(8.0)) for _ in range(150)]
        for number, sock in enumerate(socks):
            if number % 3 == 0:
                sock.sendall(b"POST /v1/comp")
            elif number % 3 == 1:
                sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        started = time.monotonic()
        answer = guarded.post(COMPLETIONS, {"prompt": "hi", "max_tokens": 1}, {"authorization": f"Bearer {KEY}"})
        assert answer.status == 200
        assert time.monotonic() - started < 2.0
        ends = [read_all(sock) for sock in socks]
    assert time.monotonic() - started < 8.0
    assert {end[:12] for number, end in enumerate(ends) if number % 3 == 0} == {b"HTTP/1.1 408"}
    assert {end for number, end in enumerate(ends) if number % 3 == 2} == {b""}


def test_s37_no_host_header_opens_the_door(guarded):
    body = b'{"prompt":"hi","max_tokens":1}'
    hosts = {"evil/?": b"400", "evil/#": b"400", "a/?x=": b"400", "x/health?": b"400", "localhost": b"401"}
    for host, status in hosts.items():
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        answer = guarded.raw((head + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body)
        assert answer.split(b" ")[1] == status, host
    targets = {
        "http://x/v1/completions": b"401",
        "http://x/health?/v1/completions": b"405",
        "/health/../v1/completions": b"401",
    }
    for target, status in targets.items():
        head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        answer = guarded.raw((head + f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
        assert answer.split(b" ")[1] == status, target


def test_s38_every_route_needs_the_key_but_those_for_probes(guarded):
    key = {"authorization": f"Bearer {KEY}"}
    routes = set(guarded.get("/openapi.json", key).json["paths"])
    assert COMPLETIONS in routes
    open_routes = {"/health", "/livez", "/readyz", "/ping", "/version", "/metrics"}
    aliases = {"//v1/completions", "/v1//completions", "/v1/%63ompletions", "/V1/completions", "/v1/completions/", "/x"}
    for path in sorted((routes | aliases) - open_routes):
        for method in ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE"):
            status = guarded.ask(method, path, b"{}" if method in ("POST", "PUT") else None).status
            assert status == 401, (method, path, status)
    assert {guarded.get(path).status for path in sorted(routes & open_routes)} == {200}


def test_s39_only_the_whole_key_is_a_key(guarded):
    wrong = ["", "Bearer", "Bearer ", f"bearer {KEY}x", f"Bearer {KEY} x", f"Bearer {KEY[:-1]}x", f"Basic {KEY}", KEY,
             "Bearer \xff\xfe", "Bearer " + "k" * 8000]  # fmt: skip
    for value in wrong:
        answer = guarded.get("/v1/models", {"authorization": value})
        assert answer.status == 401, value
        assert answer.error["code"] == "invalid_api_key"
        assert KEY not in answer.body.decode()
    two = f"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nAuthorization: Bearer x\r\n\r\n"
    assert guarded.raw(two.encode(), 2.0).split(b" ")[1] == b"401"
    assert guarded.get("/v1/models", {"authorization": f"Bearer {KEY}"}).status == 200
    assert KEY not in guarded.log


def test_s41_two_requests_of_one_id_do_not_meet(suite):
    with suite.case(), concurrent.futures.ThreadPoolExecutor(2) as pool:
        same = {"x-request-id": "same"}
        prompts = ("first prompt", "second one")
        alone = [suite.server.completion(prompt=prompt, max_tokens=24).text for prompt in prompts]
        bodies = [{"prompt": p, "max_tokens": 24, "temperature": 0, "stream": True} for p in prompts]
        answers = list(pool.map(lambda body: suite.server.post(COMPLETIONS, body, same), bodies))
        assert [answer.text for answer in answers] == alone
        leaving = threading.Thread(
            target=leave, args=(suite.server, {"max_tokens": 450, "stream": True, "ignore_eos": True}),
            kwargs={"after_bytes": 300},
        )  # fmt: skip
        leaving.start()
        assert suite.server.post(COMPLETIONS, bodies[0], same).text == alone[0]
        leaving.join()


ADMIN = (
    "/reset_prefix_cache", "/sleep", "/wake_up", "/pause", "/resume", "/abort_requests", "/collective_rpc",
    "/start_profile", "/stop_profile", "/update_weights", "/load_lora_adapter", "/v1/load_lora_adapter",
    "/fault_tolerance/apply", "/server_info", "/env", "/shutdown", "/scale_elastic_ep",
)  # fmt: skip


def test_s42_admin_routes_are_not_on_the_public_port(suite, guarded):
    with suite.case():
        for path in ADMIN:
            assert suite.server.post(path, {}).status == 404
            assert suite.server.get(path).status == 404
            assert guarded.post(path, {}, {"authorization": f"Bearer {KEY}"}).status == 404


def test_s43_pages_for_everybody_hold_no_secrets(guarded):
    key = {"authorization": f"Bearer {KEY}"}
    guarded.post(COMPLETIONS, {"prompt": "a very private prompt", "max_tokens": 2}, key)
    for path in (
        "/metrics",
        "/health",
        "/version",
        "/ping",
        "/livez",
        "/readyz",
        "/v1/models",
        "/load",
        "/openapi.json",
    ):
        text = guarded.get(path, key).body.decode()
        assert KEY not in text
        assert "private prompt" not in text
        assert os.environ["PATH"] not in text
        if path != "/openapi.json":
            assert not re.search(r"0x[0-9a-f]{6,}|/tmp/|Traceback", text.replace(str(guarded.model), "")), path


def test_s44_answers_stay_paired_with_requests(suite):
    get = b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"
    post = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    smuggled = b"GET /admin HTTP/1.1\r\nHost: x\r\n\r\n"
    with suite.case():
        assert suite.server.raw(get * 5, 1.5).count(b"HTTP/1.1 200") == 5
        for evil in (
            post + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
            post + b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" + smuggled,
            post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled,
            post + b"Content-Length: 3\r\nContent-Length: 40\r\n\r\n{}\n" + smuggled,
            post + b"Content-Length: +3\r\n\r\n{}\n" + smuggled,
            post + b"Content-Length: 3, 3\r\n\r\n{}\n" + smuggled,
            b"GET /ping HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n",
        ):
            answer = suite.server.raw(evil, 1.5)
            assert answer.count(b"HTTP/1.1 ") <= 1, (evil, answer)
            assert b"404" not in answer, (evil, answer)
        too_large = post + b"Content-Length: 99999999\r\n\r\n" + smuggled
        answer = suite.server.raw(too_large, 1.5)
        assert answer.split(b" ")[1] == b"413"
        assert answer.count(b"HTTP/1.1 ") == 1
