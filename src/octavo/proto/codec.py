"""Messages to bytes and back, with a cap on both sides.

Owns: sizes, and turning every defect of a frame into ProtocolError.   Does not own: transport.
Depth needs no cap of its own: the types are closed and finite (messages.py), so a frame that nests deeper than they do
is refused where it first differs. Source of the rules: no pickle where a byte can arrive, size checked before decoding.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from octavo.base.errors import OctavoError
from octavo.proto.messages import (
    ClientMessage,
    ControlMessage,
    EngineMessage,
    FrontEndMessage,
    NewsMessage,
    StatusMessage,
)

MAX_CLIENT_BYTES = 16 << 20
"""Front end to engine: a prompt of a million tokens takes 5 MB."""
MAX_ENGINE_BYTES = 64 << 20
"""Engine to front end: one step's deltas with logprobs."""
MAX_CONTROL_BYTES = 128 << 10
"""Supervisor and engine, supervisor and front end: start, end, and what the engine runs with."""

M = TypeVar("M")


class ProtocolError(OctavoError):
    """A frame that is not a message: too large, not msgpack, or not of a known type."""


class Codec(Generic[M]):
    """Encodes and decodes one union of messages. Not thread-safe: one a thread."""

    def __init__(self, message_type: Any, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(message_type)

    def encode(self, message: M) -> bytes:
        """Raises ProtocolError for a message above the cap."""
        frame: bytes = self._encoder.encode(message)
        if len(frame) > self.max_bytes:
            raise ProtocolError(
                f"{type(message).__name__} of {len(frame)} bytes is above the limit of {self.max_bytes}"
            )
        return frame

    def decode(self, frame: bytes) -> M:
        """Raises ProtocolError for anything but a message of this union."""
        if len(frame) > self.max_bytes:
            raise ProtocolError(f"frame of {len(frame)} bytes is above the limit of {self.max_bytes}")
        try:
            return self._decoder.decode(frame)
        except (msgspec.DecodeError, ValueError, OverflowError, RecursionError) as error:
            raise ProtocolError(f"frame of {len(frame)} bytes: {error}") from None


def client_codec() -> Codec[ClientMessage]:
    """Front end to engine."""
    return Codec(ClientMessage, MAX_CLIENT_BYTES)


def engine_codec() -> Codec[EngineMessage]:
    """Engine to front end."""
    return Codec(EngineMessage, MAX_ENGINE_BYTES)


def control_codec() -> Codec[ControlMessage]:
    """Supervisor to engine."""
    return Codec(ControlMessage, MAX_CONTROL_BYTES)


def status_codec() -> Codec[StatusMessage]:
    """Engine to supervisor."""
    return Codec(StatusMessage, MAX_CONTROL_BYTES)


def news_codec() -> Codec[NewsMessage]:
    """Supervisor to front end."""
    return Codec(NewsMessage, MAX_CONTROL_BYTES)


def front_end_codec() -> Codec[FrontEndMessage]:
    """Front end to supervisor."""
    return Codec(FrontEndMessage, MAX_CONTROL_BYTES)
