"""What becomes of one request when its engine dies.

Owns: the choice between ending and running again, and what the successor is given.
Does not own: the policy's numbers (fault/policy.py), sending, telling the consumer (dispatch.py).

The successor gets prompt, seed and the output already received, which counts as output there: the text goes on from
where its consumer is. What was received stays here: text held back for a stop string, logprobs, times.
"""

from __future__ import annotations

from octavo.engine.front.streams import OutputStream
from octavo.fault.policy import is_too_dangerous, num_request_deaths
from octavo.proto.failure import Failure
from octavo.proto.messages import Add


def note_death(stream: OutputStream, cause: str, *, is_in_row: bool, is_replayed: bool) -> Failure | None:
    """Its engine has died. The error it must end with; None: it waits for a successor.

    A request the engine did not have (it waited for a successor already) was not in this death.
    """
    if not stream.is_submitted:
        return None
    stream.is_submitted = False
    if not is_replayed:
        return Failure("internal", f"the engine died: {cause}")
    stream.num_deaths = num_request_deaths(stream.num_deaths, is_in_row=is_in_row)
    if is_too_dangerous(stream.num_deaths):
        return Failure("internal", f"the engine died {stream.num_deaths} times while it ran this request: {cause}")
    return None


def replay_messages(stream: OutputStream) -> list[Add]:
    """What a new engine is to run of it: the sequences that have not ended, under a new epoch."""
    return [Add(request=sequence) for sequence in stream.live.resume()]
