"""One line per request, as text or as JSON, whatever clients put into names."""

from __future__ import annotations

import json
import logging

import pytest

from octavo.base.log import ROOT_LOGGER, get_logger, setup_logging
from octavo.obs.request_log import RequestLine, escape, log_request


@pytest.fixture(autouse=True)
def restore_logger():
    logger = logging.getLogger(ROOT_LOGGER)
    before = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


LINE = RequestLine(
    request_id="cmpl-1",
    route="/v1/completions",
    status=200,
    num_prompt_tokens=3,
    num_output_tokens=5,
    ttft_ms=12.3456,
    e2e_ms=99.0,
    finish_reason="length",
)


def logged(capsys, line, log_format="text", level="info"):
    setup_logging(level, log_format)
    log_request(get_logger("octavo.server"), line)
    return capsys.readouterr().err


def test_the_text_line_has_every_field(capsys):
    text = logged(capsys, LINE)
    assert text.endswith(
        "request request_id=cmpl-1 route=/v1/completions status=200 prompt_tokens=3 output_tokens=5 ttft_ms=12.35 "
        "e2e_ms=99.0 finish_reason=length\n"
    )


def test_the_json_line_has_every_field_as_a_value(capsys):
    fields = json.loads(logged(capsys, LINE, "json"))
    assert (fields["request_id"], fields["status"], fields["output_tokens"]) == ("cmpl-1", 200, 5)
    assert (fields["ttft_ms"], fields["e2e_ms"], fields["finish_reason"]) == (12.35, 99.0, "length")


def test_what_is_unknown_is_left_out(capsys):
    text = logged(capsys, RequestLine(request_id="r", route="/v1/completions", status=400, error="n is too large"))
    assert text.endswith('request request_id=r route=/v1/completions status=400 error="n is too large"\n')


def test_a_fault_of_the_server_is_a_warning(capsys):
    assert logged(capsys, RequestLine(request_id="r", route="/", status=503)).startswith("WARNING")


def test_lines_below_the_level_are_not_written(capsys):
    assert logged(capsys, LINE, level="warning") == ""


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize("evil", ["a\nINFO forged", "a\r\nb", "\x1b[2J", "\x00", "\u2028", "x" * 1_000_000, "\ud800"])
def test_a_name_that_a_client_chose_stays_within_its_line(capsys, evil, log_format):
    text = logged(capsys, RequestLine(request_id=evil, route="/", status=200), log_format)
    assert text.count("\n") == 1
    assert all(char.isprintable() for char in text[:-1])
    assert len(text) < 1000


def test_long_text_is_cut_and_says_so():
    assert escape("x" * 300, 10) == "xxxxxxxxxx... (300 characters)"
