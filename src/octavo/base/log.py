"""Logging of the whole package: one logger tree, one handler on stderr, text or JSON lines.

Libraries that embed Octavo keep their own set-up: nothing is configured on import, only `setup_logging` does.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Literal

ROOT_LOGGER = "octavo"
LogFormat = Literal["text", "json"]


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def get_logger(name: str) -> logging.Logger:
    """The logger of one module: pass `__name__`."""
    return logging.getLogger(name)


def setup_logging(level: str = "warning", log_format: LogFormat = "text") -> None:
    """Send the package's records of `level` and above to stderr. Calling again replaces the handler."""
    logger = logging.getLogger(ROOT_LOGGER)
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JsonFormatter()
        if log_format == "json"
        else logging.Formatter("%(levelname)s %(asctime)s %(name)s: %(message)s")
    )
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
