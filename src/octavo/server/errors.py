"""Errors as HTTP clients see them: status, and a body of OpenAI's shape.

Owns: the body's shape, the closed set of `code`s, and which of our errors becomes which status.
Invariant: a body says nothing but what the request itself and the public limits say: no paths, addresses, tracebacks.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Literal

import msgspec

from octavo.base.errors import CapacityError, EngineDeadError, OverloadedError, ValidationError
from octavo.base.log import get_logger

logger = get_logger(__name__)

ErrorCode = Literal[
    "invalid_value",
    "invalid_json",
    "invalid_request",
    "context_length_exceeded",
    "unsupported_feature",
    "invalid_api_key",
    "model_not_found",
    "not_found",
    "method_not_allowed",
    "request_timeout",
    "content_too_large",
    "unsupported_media_type",
    "headers_too_large",
    "queue_full",
    "unavailable",
    "shutting_down",
    "constraint_failed",
    "request_failed",
    "numerical_error",
    "deadline_exceeded",
    "internal_error",
]

RETRY_AFTER_S = 1
_MAX_MESSAGE_CHARS = 2000


class ErrorInfo(msgspec.Struct, kw_only=True):
    """What went wrong. `code` is a word of a closed set, `param` the field of the request at fault."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorResponse(msgspec.Struct, kw_only=True):
    """The body of every answer that is not a success, and the last event of a stream that failed."""

    error: ErrorInfo


class ApiError(Exception):
    """An answer that is an error. `closes`: the connection ends with it."""

    def __init__(
        self,
        status: int,
        code: ErrorCode,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        closes: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message if len(message) <= _MAX_MESSAGE_CHARS else message[:_MAX_MESSAGE_CHARS] + "..."
        self.param = param
        self.headers = dict(headers or {})
        if closes:
            self.headers["connection"] = "close"

    @property
    def type(self) -> str:
        """OpenAI's word for the kind of error."""
        return _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "internal_server_error")

    def body(self) -> bytes:
        """As JSON."""
        info = ErrorInfo(message=self.message, type=self.type, param=self.param, code=self.code)
        return msgspec.json.encode(ErrorResponse(error=info))


_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "service_unavailable",
    504: "timeout_error",
}


def write_openai_error(error: ApiError, request_id: str) -> tuple[int, bytes]:
    """(status, body) of OpenAI's shape, in which the request's id has no place."""
    return error.status, error.body()


def shown(value: object) -> str:
    """A value of the request for a message, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def invalid_value(message: str, param: str | None) -> ApiError:
    """A value of the request is wrong."""
    return ApiError(400, "invalid_value", message, param=param)


def unavailable(code: ErrorCode, message: str, *, closes: bool = False, retry_after_s: int = RETRY_AFTER_S) -> ApiError:
    """Try again later."""
    return ApiError(503, code, message, headers={"retry-after": str(retry_after_s)}, closes=closes)


def hopeless(status: int, code: ErrorCode, message: str) -> ApiError:
    """A failure of the server's that the same request would meet again: official clients repeat a 5xx unless told."""
    return ApiError(status, code, message, headers={"x-should-retry": "false"})


def as_api_error(error: Exception, request_id: str) -> ApiError:
    """What a client is told of `error`. What nobody foresaw is logged under an id, and the client gets the id."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ValidationError):
        is_length = error.parameter == "input_tokens"
        code: ErrorCode = "context_length_exceeded" if is_length else "invalid_value"
        return ApiError(400, code, _as_text(error), param=error.parameter)
    if isinstance(error, CapacityError):
        return ApiError(400, "context_length_exceeded", _as_text(error))
    if isinstance(error, OverloadedError):
        return unavailable("queue_full", _as_text(error))
    if isinstance(error, EngineDeadError):
        logger.warning("request %s: %s", request_id, error)
        return unavailable("unavailable", "The engine is not available at the moment.")
    return hidden_error(request_id, error)


def hidden_error(request_id: str, cause: Exception | str | None) -> ApiError:
    """What is not for the client is logged under an id, and the client gets the id."""
    error_id = secrets.token_hex(8)
    if isinstance(cause, Exception):
        logger.error("request %s failed, error id %s", request_id, error_id, exc_info=cause)
    else:
        logger.error("request %s failed, error id %s: %s", request_id, error_id, cause or "no cause is known")
    return ApiError(500, "internal_error", f"Internal server error; error id {error_id}.")


def _as_text(error: Exception) -> str:
    """One line that can be encoded as UTF-8."""
    return str(error).encode("utf-8", "replace").decode()
