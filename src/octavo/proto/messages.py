"""Every message between processes, as closed unions of typed values.

    front end ──ClientMessage──► engine      over the engine's socket; any number of front ends
    front end ◄─EngineMessage── engine
    supervisor ──ControlMessage──► engine    over a socket pair that only the two have
    supervisor ◄─StatusMessage── engine
    supervisor ──NewsMessage──► front end    over one socket pair each, where front ends are processes of their own
    supervisor ◄─FrontEndMessage── front end

Invariants: no field is of an open type (Raw fields are decoded by their reader into one type) and unknown fields are
errors, so that what a decoder accepts is no deeper than the types here; nothing is ever pickled.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from octavo.proto.output import RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.stats import EngineStats


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """Common form: tagged, closed."""


# ---- front end to engine ----------------------------------------------------------------------------------------


class Add(_Message, frozen=True, tag="add"):
    """Run this sequence. Answered by Deltas, or once by Rejected."""

    request: NewRequest


class Abort(_Message, frozen=True, tag="abort"):
    """End these sequences; unknown ids are ignored. Each live one is answered by its last delta."""

    request_ids: list[str]


class Ping(_Message, frozen=True, tag="ping"):
    """Answered by Pong at once, also while a step runs."""

    call_id: int


class GetStats(_Message, frozen=True, tag="get_stats"):
    """Answered by StatsReply."""

    call_id: int


class ResetPrefixCache(_Message, frozen=True, tag="reset_prefix_cache"):
    """Answered by ResetReply."""

    call_id: int
    reset_running: bool = False


ClientMessage = Add | Abort | Ping | GetStats | ResetPrefixCache


# ---- engine to front end ----------------------------------------------------------------------------------------


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How busy the engine is, and how far it has come."""

    num_steps: int
    """Steps finished since the start: two equal numbers with work between them mean a stall."""
    num_running: int
    num_waiting: int


class Deltas(_Message, frozen=True, tag="deltas"):
    """What the requests of this front end gained by one turn of the engine's loop."""

    incarnation: int
    """Of the engine; those of a dead one change nothing."""
    deltas: list[RequestDelta]
    load: Load


RejectionKind = Literal["validation", "capacity", "internal"]


class Rejected(_Message, frozen=True, tag="rejected"):
    """A sequence that was not taken in; no delta of it will come."""

    request_id: str
    epoch: int
    kind: RejectionKind
    message: str
    parameter: str | None = None


class Pong(_Message, frozen=True, tag="pong"):
    """The engine's loop turns."""

    call_id: int
    load: Load


class StatsReply(_Message, frozen=True, tag="stats_reply"):
    """Counters as of now."""

    call_id: int
    stats: EngineStats


class ResetReply(_Message, frozen=True, tag="reset_reply"):
    """Whether the prefix cache was emptied."""

    call_id: int
    is_done: bool


EngineMessage = Deltas | Rejected | Pong | StatsReply | ResetReply


# ---- supervisor to engine ---------------------------------------------------------------------------------------


class StartEngine(_Message, frozen=True, tag="start"):
    """The first message: what to run, and where to listen."""

    config: msgspec.Raw
    """An EngineConfig, encoded."""
    address: str
    incarnation: int
    """Counts the engine processes of one supervisor from 0."""
    log_level: str
    log_format: Literal["text", "json"]


class ClientGone(_Message, frozen=True, tag="client_gone"):
    """A front end has died: end all its requests."""

    client_idx: int


class Shutdown(_Message, frozen=True, tag="shutdown"):
    """End in order, now."""


ControlMessage = StartEngine | ClientGone | Shutdown


# ---- engine to supervisor ---------------------------------------------------------------------------------------


class EngineReady(_Message, frozen=True, tag="ready"):
    """The model is loaded and warm, the socket is bound."""

    config: msgspec.Raw
    """The ResolvedConfig the engine runs with, encoded."""
    phases: dict[str, float]
    """Phase of the start-up -> seconds."""


class FailedOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One problem of a configuration."""

    option: str
    value: str | None
    remedy: str


FailureKind = Literal["config", "load", "model_not_found", "capacity", "other"]


class EngineFailed(_Message, frozen=True, tag="failed"):
    """The last message of an engine that could not start or cannot go on."""

    kind: FailureKind
    message: str
    problems: list[FailedOption] = []


StatusMessage = EngineReady | EngineFailed


# ---- supervisor to front end ------------------------------------------------------------------------------------


class EngineUp(_Message, frozen=True, tag="up"):
    """An engine serves at this address."""

    address: str
    incarnation: int
    config: msgspec.Raw
    """The ResolvedConfig it runs with, encoded."""
    phases: dict[str, float]


class EngineDown(_Message, frozen=True, tag="down"):
    """It died. EngineRestarting or EngineGone follows."""

    cause: str
    is_in_row: bool


class EngineRestarting(_Message, frozen=True, tag="restarting"):
    """A successor is loading."""


class EngineGone(_Message, frozen=True, tag="gone"):
    """There will be no further engine."""

    cause: str


NewsMessage = EngineUp | EngineDown | EngineRestarting | EngineGone


# ---- front end to supervisor ------------------------------------------------------------------------------------


class KillEngine(_Message, frozen=True, tag="kill"):
    """The watchdog of a front end found the engine stalled."""

    incarnation: int
    cause: str


FrontEndMessage = KillEngine
