"""What is different on Anthropic's routes before an endpoint is reached: keys, the form of errors, the id in a header.

Does not own: the table of routes (app.py).
"""

from __future__ import annotations

from octavo.server.anthropic.errors import write_error
from octavo.server.exchange import Exchange

MESSAGES = "/v1/messages"
MODELS = "/v1/models"
COUNT_TOKENS = "/v1/messages/count_tokens"


def is_anthropic(path: str) -> bool:
    """Also what does not exist there."""
    return path == MESSAGES or path.startswith(MESSAGES + "/")


def speaks_anthropic(exchange: Exchange) -> bool:
    """On its own routes all do; on those that both APIs have, the clients that send the version of this one."""
    path = exchange.path
    if path == MODELS or path.startswith(MODELS + "/"):
        return exchange.header(b"anthropic-version") is not None
    return is_anthropic(path)


def adopt(exchange: Exchange) -> None:
    """Answers speak Anthropic's form from here on."""
    exchange.speaks_anthropic = True
    exchange.write_error = write_error
    exchange.extra_headers.append((b"request-id", exchange.request_id.encode()))
