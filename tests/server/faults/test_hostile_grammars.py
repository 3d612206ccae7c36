"""Grammars that are made to cost, all of them beside a stream whose reader must not notice."""

from __future__ import annotations

import concurrent.futures
import time

from fakes.bad_constraints import OK_OR_REFUSED, PROBES
from fakes.bad_requests import Probe
from fakes.fault_suite import L, V
from fakes.stream_gaps import StreamGaps

HOSTILE = ("S51", "S52", "S53", "S55", "S56")
MAX_ANSWER_S, MAX_ADDED_GAP_S = 10.0, 1.0
"""Generous: on a machine that does nothing else answers take 0.2 s, and gaps do not grow by 50 ms."""


def nested(depth):
    """Two ways to go on at each level."""
    if depth == 0:
        return {"type": "string", "pattern": "(a|aa){1,60}b?"}
    kinds = [
        {"type": "object", "properties": {"k": {"const": name}, "v": nested(depth - 1)}, "required": ["k", "v"]}
        for name in ("left", "right")
    ]
    return {"oneOf": kinds}


def test_hostile_grammars_end_within_their_caps_while_a_stream_goes_on(suite):
    probes = [probe for case in HOSTILE for probe in PROBES[case](V, L)]
    for depth in (7, 8, 9, 10):
        schema = nested(depth) | {"title": f"beside a stream {depth}"}
        probes.append(Probe({"structured_outputs": {"json": schema}}, statuses=OK_OR_REFUSED))
    slowest: dict[float, bytes] = {}

    def ask(probe):
        answer = suite.server.post(probe.route, probe.data)
        assert answer.status in probe.statuses, answer.body[:500]
        slowest[answer.seconds] = probe.data[:100]

    with suite.case():
        with StreamGaps(suite.server, max_tokens=L - 40) as calm:
            time.sleep(2.0)
        with StreamGaps(suite.server, max_tokens=L - 40) as busy, concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, probes))
    assert (calm.error, busy.error) == (None, None)
    assert calm.num_tokens > 20
    assert busy.num_tokens > 20
    assert max(slowest) < MAX_ANSWER_S, slowest[max(slowest)]
    assert busy.longest_s < calm.longest_s + MAX_ADDED_GAP_S
