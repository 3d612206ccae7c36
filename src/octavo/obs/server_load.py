"""What all front ends of a server have in hand, as gauges in the memory that they share.

Owns: this front end's part of each, the sums over all.   Does not own: limits on them (server/admission.py).
Invariant: a front end's part is 0 when it starts and after it has died, whatever it had.
"""

from __future__ import annotations

from octavo.obs import catalogue
from octavo.obs.counters import Counters


class ServerLoad:
    """One front end's hand on it."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        counters.clear_gauges()

    def change_active(self, num_requests: int) -> None:
        """So many more requests for text are being answered; fewer with a negative number."""
        self._counters.change(catalogue.ACTIVE_REQUESTS, num_requests)

    def change_queue(self, num_requests: int, num_tokens: int) -> None:
        """So many more requests, of so many prompt tokens, wait for the engine to begin."""
        self._counters.change(catalogue.QUEUED_REQUESTS, num_requests)
        self._counters.change(catalogue.QUEUED_PROMPT_TOKENS, num_tokens)

    @property
    def num_active(self) -> int:
        """Requests for text that are being answered, by all front ends."""
        return self._sum(catalogue.ACTIVE_REQUESTS)

    @property
    def num_queued_requests(self) -> int:
        """Requests that wait, at all front ends."""
        return self._sum(catalogue.QUEUED_REQUESTS)

    @property
    def num_queued_tokens(self) -> int:
        """Prompt tokens of those; an estimate for what is not tokenized yet."""
        return self._sum(catalogue.QUEUED_PROMPT_TOKENS)

    def _sum(self, gauge: catalogue.GaugeSpec) -> int:
        return int(self._counters.read(gauge)[0])
