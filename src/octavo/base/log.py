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
_CONTROL_CHARS = {code: f"\\x{code:02x}" for code in (*range(10), *range(11, 32), *range(127, 160))}
"""All but the newline; terminals act on some of them."""


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = getattr(record, "fields", None)
        if isinstance(extra, dict):
            fields.update(extra)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


class _TextFormatter(logging.Formatter):
    """One record a line: the lines of a longer message are indented, so that none of them can pass for a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return super().formatMessage(record).translate(_CONTROL_CHARS).replace("\n", "\n    ")


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
        _JsonFormatter() if log_format == "json" else _TextFormatter("%(levelname)s %(asctime)s %(name)s: %(message)s")
    )
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False
