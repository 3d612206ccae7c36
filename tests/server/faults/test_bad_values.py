"""Values that must be refused, by a table (fakes/bad_requests.py); after each case it is as if nothing had been sent.

What the cases are is in tests/data/fault_cases.jsonl; which are driven elsewhere or do not apply yet is in
fakes/fault_cases.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fakes import bad_constraints, bad_requests, bad_responses
from fakes.bad_requests import CHAT, COMPLETIONS
from fakes.fault_cases import CASES, ELSEWHERE, NOT_YET, ROOT
from fakes.fault_suite import LEAKS, L, V, check_refusal

PROBES = bad_requests.PROBES | bad_constraints.PROBES
TABLES = (PROBES, bad_responses.PROBES)
BROKEN = (b"", b"{", b"[]", b"1", b"\xff", b'{"messages":null}', b'{"model":5}')


def drivers() -> dict[str, str]:
    """Case -> name of its test in this folder."""
    found = {}
    for path in Path(__file__).parent.glob("test_*.py"):
        for name in re.findall(r"^def (test_[sf]\d\d_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found[name[5:8].upper()] = name
    return found


def test_every_case_is_driven_here_or_elsewhere_or_cannot_happen_yet():
    driven = {*PROBES, *drivers()}
    tables = [driven, set(ELSEWHERE), set(NOT_YET)]
    assert set().union(*tables) == set(CASES)
    assert sum(map(len, tables)) == len(CASES), "a case is in two tables"
    missing = [path for paths in ELSEWHERE.values() for path in paths if not (ROOT / path).is_file()]
    assert missing == []


@pytest.mark.parametrize("case_id", PROBES)
def test_bad_values_are_refused_and_nothing_else_happens(suite, case_id):
    with suite.case():
        for number, probe in enumerate(probe for table in TABLES if case_id in table for probe in table[case_id](V, L)):
            answer = suite.server.post(probe.route, probe.data)
            shown = f"{case_id} request {number} {probe.data[:120]!r}: {answer.status} {answer.body[:300]!r}"
            assert answer.status in probe.statuses, shown
            if answer.status >= 400:
                try:
                    check_refusal(answer, probe.param)
                except (AssertionError, ValueError, KeyError) as error:
                    raise AssertionError(f"{shown}: {error}") from None
            else:
                assert "NaN" not in answer.body.decode()
                assert "Infinity" not in answer.body.decode()


def test_s79_errors_say_nothing_of_our_insides(suite):
    requests = [("GET", "/nothing", None), ("PUT", COMPLETIONS, b"{}"), ("GET", COMPLETIONS, None)]
    requests += [("POST", CHAT, body) for body in BROKEN]
    requests += [
        ("POST", "/tokenize", b"{}"),
        ("POST", "/detokenize", b'{"tokens":[-1]}'),
        ("POST", "/detokenize", b'{"tokens":[999999]}'),
        ("POST", "/detokenize", b'{"tokens":"x"}'),
        ("POST", COMPLETIONS, b'{"prompt":"x","model":"no such model"}'),
    ]
    for case_id in ("S01", "S05", "S13", "S15", "S16", "S18", "S20"):
        requests += [("POST", probe.route, probe.data) for probe in PROBES[case_id](V, L)[:4]]
    with suite.case():
        assert len(requests) >= 40
        for method, path, body in requests:
            answer = suite.server.ask(method, path, body, {"content-type": "application/json"})
            if answer.status < 400:
                continue
            assert answer.error
            assert not LEAKS.search(answer.body.decode()), (path, body, answer.body)
