"""The mix of a soak: seeded, valid JSON where it should be, only kinds that the server knows."""

from __future__ import annotations

import json
import random

from octavo.bench.soak.exchange import Manner, render
from octavo.bench.soak.requests import KINDS, RequestMix


def drawn(count=400, kinds=KINDS, seed=1):
    mix, rng = RequestMix("m", kinds), random.Random(seed)
    return [mix.draw(rng) for _ in range(count)]


def test_the_same_seed_gives_the_same_requests():
    assert drawn(50) == drawn(50)
    assert drawn(50) != drawn(50, seed=2)


def test_all_kinds_and_all_manners_come():
    found = drawn()
    assert {kind.name for kind in KINDS} | {"bad", "page"} <= {request.name for request in found}
    assert {request.manner for request in found} == set(Manner)


def test_bodies_are_json_that_name_the_model():
    for request in drawn():
        if request.name in {kind.name for kind in KINDS}:
            assert json.loads(request.data.partition(b"\r\n\r\n")[2])["model"] == "m"


def test_only_bad_requests_may_be_refused():
    for request in drawn():
        assert (200 in request.statuses) == (request.name != "bad")


def test_kinds_that_are_left_out_never_come():
    kinds = tuple(kind for kind in KINDS if not kind.is_optional)
    assert "tools" not in {request.name for request in drawn(kinds=kinds)}


def test_a_request_without_a_body_has_no_length():
    assert render("GET", "/health") == b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
