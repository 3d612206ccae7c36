"""Sends one request and records what comes back; asks the server about itself.

Owns: requests to the server under test.   Does not own: when they are sent (load.py), connections (client.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from octavo.base.clock import Clock
from octavo.base.errors import OctavoError
from octavo.bench.samples import Sample
from octavo.bench.serve.backends import Backend, BodyOptions, describe_error
from octavo.bench.serve.client import ExchangeError, HttpClient
from octavo.bench.serve.record import RequestRecord, StreamRecorder
from octavo.bench.serve.speculation import SpeculationCounters, parse_counters

ASK_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 16 * 1024 * 1024
READY_INTERVAL_S = 1.0


class ServerError(OctavoError):
    """The server under test cannot be used at all."""


class RequestSender:
    """Sends samples to one endpoint. Invariant: `send` raises nothing but cancellation; failures are in the record."""

    def __init__(
        self,
        client: HttpClient,
        backend: Backend,
        options: BodyOptions,
        *,
        endpoint: str | None = None,
        clock: Clock,
        request_id_prefix: str,
        timeout_s: float,
    ) -> None:
        self._client = client
        self._backend = backend
        self._options = options
        self._endpoint = endpoint or backend.endpoint
        self._clock = clock
        self._request_id_prefix = request_id_prefix
        self._timeout_s = timeout_s

    async def send(self, sample: Sample, index: int, *, arrival_s: float) -> RequestRecord:
        """One request, to its end. Its time starts when it is written, connecting included, making its body not."""
        model = self._options.models[index % len(self._options.models)]
        body = msgspec.json.encode(self._backend.make_body(sample, self._options, model))
        headers = {"x-request-id": f"{self._request_id_prefix}{index}"}
        request = self._client.target.render("POST", self._endpoint, body, headers)
        record = RequestRecord(index=index, num_prompt_tokens=len(sample.prompt_token_ids), arrival_s=arrival_s)
        recorder = StreamRecorder(record)
        record.start_s = self._clock.now_s()
        try:
            head = await self._client.exchange(request, recorder, timeout_s=self._timeout_s)
        except ExchangeError as error:
            recorder.fail(str(error))
        else:
            record.status, record.retry_after = head.status, head.headers.get("retry-after")
            recorder.finish(head.status, head.reason)
        record.closed_s = self._clock.now_s()
        return record


@dataclass(slots=True)
class _Answer:
    """A whole body in memory (BodySink)."""

    status: int = 0
    body: bytes = b""

    def on_body(self, status: int, body: bytes, now_s: float) -> None:
        self.body += body
        if len(self.body) > MAX_ANSWER_BYTES:
            raise ExchangeError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")


async def ask(client: HttpClient, path: str) -> _Answer:
    """GET a small answer. Raises ExchangeError."""
    answer = _Answer()
    head = await client.exchange(client.target.render("GET", path, b"", {}), answer, timeout_s=ASK_TIMEOUT_S)
    answer.status = head.status
    return answer


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What a server serves: the name for requests, and where its files are, if it says so."""

    name: str
    root: str


async def find_model(client: HttpClient, *, ready_timeout_s: float) -> ServedModel:
    """The first model of /v1/models; asked again until the time is over. Raises ServerError."""
    deadline_s = asyncio.get_running_loop().time() + ready_timeout_s
    while True:
        try:
            answer = await ask(client, "/v1/models")
            if answer.status == 200:
                card = msgspec.json.decode(answer.body)["data"][0]
                return ServedModel(str(card["id"]), str(card.get("root") or card["id"]))
            problem = f"HTTP {answer.status}: {describe_error(answer.body)}"
        except ExchangeError as error:
            problem = str(error)
        except (msgspec.MsgspecError, KeyError, IndexError, TypeError, AttributeError):
            problem = "the answer is no list of models"
        if asyncio.get_running_loop().time() >= deadline_s:
            raise ServerError(
                f"/v1/models of {client.target.host}:{client.target.port}: {problem}; start the server, "
                "wait for it with --ready-check-timeout-sec, or name the model with --model"
            )
        await asyncio.sleep(READY_INTERVAL_S)


async def wait_until_ready(sender: RequestSender, sample: Sample, *, timeout_s: float) -> None:
    """Send `sample` until it is answered, or the time is over. Raises ServerError."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while True:
        record = await sender.send(sample, 0, arrival_s=0.0)
        if record.is_success:
            return
        if loop.time() >= deadline_s:
            raise ServerError(f"the server is not ready after {timeout_s:g} s; the last answer was: {record.error}")
        await asyncio.sleep(READY_INTERVAL_S)


async def read_speculation(client: HttpClient) -> SpeculationCounters | None:
    """Its counters of speculative decoding; None where it has none, or no /metrics."""
    try:
        answer = await ask(client, "/metrics")
    except ExchangeError:
        return None
    return parse_counters(answer.body.decode(errors="replace")) if answer.status == 200 else None
