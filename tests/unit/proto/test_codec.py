"""Messages survive the way; everything else is refused, whatever it is."""

from __future__ import annotations

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.proto.codec import (
    Codec,
    ProtocolError,
    client_codec,
    control_codec,
    engine_codec,
    front_end_codec,
    news_codec,
    status_codec,
)
from octavo.proto.messages import (
    Abort,
    Add,
    ClientGone,
    Deltas,
    EngineDown,
    EngineFailed,
    EngineReady,
    EngineRestarting,
    FailedOption,
    GetStats,
    KillEngine,
    Load,
    Ping,
    Pong,
    Rejected,
    ResetPrefixCache,
    Shutdown,
)
from octavo.proto.output import RequestDelta
from octavo.proto.request import NewRequest
from octavo.proto.result import TokenLogprobs
from octavo.proto.sampling import SamplingParams

LOAD = Load(num_steps=3, num_running=1, num_waiting=2)
REQUEST = NewRequest(
    request_id="0-a-1",
    prompt_token_ids=[1, 2, 300_000],
    sampling=SamplingParams(temperature=0.5, stop=["a"], logit_bias={3: 1.0}, seed=2**63 - 1),
    max_tokens=5,
    seed=2**64 - 1,
    output_token_ids=[9],
    epoch=2,
    deadline_s=1.5,
    cache_salt="s",
)
DELTA = RequestDelta(
    request_id="0-a-1",
    epoch=2,
    token_ids=[7],
    logprobs=[TokenLogprobs([7, 8], [-0.5, -1.0], [1, 2])],
    finish_reason="stop",
)
MESSAGES = [
    (client_codec(), Add(request=REQUEST)),
    (client_codec(), Abort(request_ids=["a", "b"])),
    (client_codec(), Ping(call_id=1)),
    (client_codec(), GetStats(call_id=2)),
    (client_codec(), ResetPrefixCache(call_id=3, reset_running=True)),
    (engine_codec(), Deltas(incarnation=1, deltas=[DELTA], load=LOAD)),
    (engine_codec(), Rejected(request_id="a", epoch=0, kind="capacity", message="too long")),
    (engine_codec(), Pong(call_id=1, load=LOAD)),
    (control_codec(), ClientGone(client_idx=3)),
    (control_codec(), Shutdown()),
    (status_codec(), EngineReady(config=msgspec.Raw(b"\x80"), phases={"weights": 0.5})),
    (
        status_codec(),
        EngineFailed(kind="config", message="no", problems=[FailedOption(option="a", value=None, remedy="b")]),
    ),
    (news_codec(), EngineDown(cause="killed", is_in_row=True)),
    (news_codec(), EngineRestarting()),
    (front_end_codec(), KillEngine(incarnation=0, cause="stalled")),
]
CODECS = [client_codec, engine_codec, control_codec, status_codec, news_codec, front_end_codec]


@pytest.mark.parametrize(("codec", "message"), MESSAGES, ids=[type(message).__name__ for _, message in MESSAGES])
def test_a_message_survives_the_way(codec, message):
    assert codec.decode(codec.encode(message)) == message


class Evil:
    """Would write a file if it were ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("make", CODECS)
def test_no_codec_unpickles(make, tmp_path):
    marker = tmp_path / "marker"
    with pytest.raises(ProtocolError):
        make().decode(pickle.dumps(Evil(marker)))
    assert not marker.exists()


@pytest.mark.parametrize("make", CODECS)
@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\x81\xa4type" + b"\x91" * 100_000,
        b"\x82\xa4type\xa3add\xa7request" + b"\x81\xa1a" * 100_000,
        b"\x83\xa4type\xa2up\xa6config" + b"\x91" * 100_000,
        b"\x82\xa4type\xa5start\xa6config" + b"\x81\xa1a" * 100_000,
        b"\x82\xa4type\xa4ping\xa7call_id\xcb" + b"\x00" * 8,
        b"\x82\xa4type\xa8__init__\xa1a\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\x82\xa4type\xa5abort\xabrequest_ids\xdd\xff\xff\xff\xff",
    ],
)
def test_what_is_no_message_is_refused(make, frame):
    with pytest.raises(ProtocolError):
        make().decode(frame)


@pytest.mark.parametrize("make", CODECS)
@given(frame=st.binary(max_size=200))
def test_random_bytes_are_refused(make, frame):
    with pytest.raises(ProtocolError):
        make().decode(frame)


@given(data=st.data())
def test_a_damaged_message_is_refused_or_another_message(data):
    codec, message = data.draw(st.sampled_from(MESSAGES))
    frame = bytearray(codec.encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = codec.decode(bytes(frame[: data.draw(st.integers(0, len(frame)))]))
    except ProtocolError:
        return
    assert isinstance(decoded, msgspec.Struct)


def test_an_unknown_field_is_refused():
    with pytest.raises(ProtocolError, match="unknown field"):
        client_codec().decode(msgspec.msgpack.encode({"type": "ping", "call_id": 1, "more": 2}))


def test_parameters_of_a_request_are_checked_again():
    value = msgspec.to_builtins(Add(request=REQUEST))
    value["request"]["sampling"]["temperature"] = -1.0
    with pytest.raises(ProtocolError, match="temperature"):
        client_codec().decode(msgspec.msgpack.encode(value))


def test_both_sides_keep_to_the_size():
    codec = Codec(Abort, 100)
    assert codec.decode(codec.encode(Abort(request_ids=["a" * 50])))
    with pytest.raises(ProtocolError, match="above the limit of 100"):
        codec.encode(Abort(request_ids=["a" * 100]))
    with pytest.raises(ProtocolError, match="above the limit of 100"):
        codec.decode(Codec(Abort, 1000).encode(Abort(request_ids=["a" * 100])))
