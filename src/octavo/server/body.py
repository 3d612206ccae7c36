"""Bodies of requests: read within bounds, then decoded into a typed struct.

Owns: size, media type, nesting, number of keys, and errors that name the field.   Does not own: timeouts (connection).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from octavo.server.cycle import ClientDisconnectedError, Message
from octavo.server.errors import ApiError

T = TypeVar("T")

_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}:]', re.DOTALL)
"""A string (skipped) or a sign of structure. Possessive: no input makes it look back."""
_FIELD = re.compile(r"`\$\.([A-Za-z_]\w*)|^Object missing required field `(\w+)`$")


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """How large and how nested a body may be."""

    max_bytes: int = 16 << 20
    max_depth: int = 64
    max_keys: int = 100_000


async def read_body(receive: Callable[[], Awaitable[Message]], content_length: str | None, limits: BodyLimits) -> bytes:
    """The whole body. Raises ApiError 413 as soon as the limit is passed, ClientDisconnectedError."""
    if content_length is not None and content_length.isdigit() and int(content_length) > limits.max_bytes:
        raise _too_large(limits)
    parts: list[bytes] = []
    num_bytes = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnectedError
        part: bytes = message.get("body", b"")
        num_bytes += len(part)
        if num_bytes > limits.max_bytes:
            raise _too_large(limits)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def check_headers(content_type: str | None, content_encoding: str | None) -> None:
    """JSON as it is, or raise ApiError: 415."""
    if content_encoding not in (None, "", "identity"):
        raise ApiError(415, "unsupported_media_type", "Content-Encoding is not supported: send the body as it is.")
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        raise ApiError(415, "unsupported_media_type", "Send the header Content-Type: application/json.")


def check_structure(body: bytes, limits: BodyLimits) -> None:
    """Bound nesting and keys before anything is built of the body. Raises ApiError.

    Cost: a count of four characters for almost all bodies, else one pass that ends at the first limit.
    """
    num_openings = body.count(b"[") + body.count(b"{")
    if num_openings <= limits.max_depth and num_openings + body.count(b":") <= limits.max_keys:
        return
    depth = num_keys = 0
    for match in _STRUCTURE.finditer(body):
        sign = match[0]
        if sign in (b"[", b"{"):
            depth += 1
            num_keys += 1
            if depth > limits.max_depth:
                raise ApiError(400, "invalid_json", f"The body is nested deeper than {limits.max_depth} levels.")
        elif sign in (b"]", b"}"):
            depth -= 1
        elif sign == b":":
            num_keys += 1
        if num_keys > limits.max_keys:
            raise ApiError(400, "invalid_json", f"The body has more than {limits.max_keys} keys and containers.")


def decode(body: bytes, kind: type[T], limits: BodyLimits) -> T:
    """The struct that the body holds; fields it does not know are ignored. Raises ApiError naming the field."""
    check_structure(body, limits)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        field = _FIELD.search(str(error))
        raise ApiError(400, "invalid_value", f"{error}.", param=(field[1] or field[2]) if field else None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ApiError(400, "invalid_json", f"The body is not valid JSON: {error}.") from None


def _too_large(limits: BodyLimits) -> ApiError:
    message = f"Request body too large: at most {limits.max_bytes} bytes are accepted."
    return ApiError(413, "content_too_large", message, closes=True)
