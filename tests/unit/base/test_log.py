import json
import logging

import pytest

from octavo.base.log import ROOT_LOGGER, get_logger, setup_logging


@pytest.fixture(autouse=True)
def restore_logger():
    logger = logging.getLogger(ROOT_LOGGER)
    before = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def test_json_lines_carry_level_logger_and_message(capsys):
    setup_logging("info", "json")
    get_logger("octavo.engine").info("ready in %d ms", 5)
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["logger"], line["message"]) == ("info", "octavo.engine", "ready in 5 ms")


def test_setting_up_twice_does_not_double_the_lines(capsys):
    setup_logging("info")
    setup_logging("info")
    get_logger("octavo.x").info("once")
    assert capsys.readouterr().err.count("once") == 1


def test_records_below_the_level_are_dropped(capsys):
    setup_logging("warning")
    get_logger("octavo.x").info("quiet")
    assert capsys.readouterr().err == ""
