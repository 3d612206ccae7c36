"""What is different on Anthropic's routes before an endpoint is reached: keys, the form of errors, the id in a header.

Does not own: the table of routes (app.py).
"""

from __future__ import annotations

from octavo.server.anthropic.errors import write_error
from octavo.server.exchange import Exchange

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"


def is_anthropic(path: str) -> bool:
    """Also what does not exist there."""
    return path == MESSAGES or path.startswith(MESSAGES + "/")


def adopt(exchange: Exchange) -> None:
    """Answers speak Anthropic's form from here on."""
    exchange.write_error = write_error
    exchange.extra_headers.append((b"request-id", exchange.request_id.encode()))
