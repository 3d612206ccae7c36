"""Counters of all front ends of one server, in memory that they share.

Owns: the layout, and who writes where.   Does not own: which metrics there are (catalogue.py), how they are shown.
Each front end has a page of its own and only adds to it (gauges also shrink); a reader sums over all pages. So a scrape
of any front end gives the totals of all, a front end that died is not forgotten, and its successor counts on in the
same page.
The memory has no name in any file system: it ends with the last process that holds it.
Invariants: one writer a page; a value is one aligned 8-byte float, so a reader sees it before or after an addition.
"""

from __future__ import annotations

import itertools
import mmap
import os
from bisect import bisect_left
from typing import Self

from octavo.base.errors import InvariantError
from octavo.obs.catalogue import CounterSpec, GaugeSpec, HistogramSpec, MetricSpec

_ITEM_BYTES = 8


class CounterLayout:
    """Where each series of each metric lies in a page."""

    def __init__(self, metrics: tuple[MetricSpec, ...]) -> None:
        self.metrics = metrics
        self._starts: dict[tuple[str, tuple[str, ...]], int] = {}
        num_items = 0
        for metric in metrics:
            num_per_series = _num_items(metric)
            for values in label_values(metric):
                self._starts[metric.name, values] = num_items
                num_items += num_per_series
        self.num_items = num_items
        """Numbers in a page."""

    def start(self, metric: MetricSpec, values: tuple[str, ...]) -> int:
        """First item of a series. Raises InvariantError for label values that are not in the catalogue."""
        try:
            return self._starts[metric.name, values]
        except KeyError:
            raise InvariantError(f"{metric.name} has no series {values}") from None


def label_values(metric: MetricSpec) -> list[tuple[str, ...]]:
    """The label values of every series of a metric, in order; one empty tuple where it has no labels."""
    return list(itertools.product(*(values for _, values in metric.labels)))


def _num_items(metric: MetricSpec) -> int:
    """A counter or gauge is one number; a histogram one for each bound, one for above the last, and the sum."""
    return len(metric.bounds) + 2 if isinstance(metric, HistogramSpec) else 1


class Counters:
    """The pages of `num_pages` front ends, one of which is the writer's own."""

    def __init__(self, layout: CounterLayout, memory: mmap.mmap, *, num_pages: int, page: int = 0) -> None:
        if not 0 <= page < num_pages:
            raise InvariantError(f"page {page} of {num_pages}")
        self.layout = layout
        self._num_pages = num_pages
        self._items = memoryview(memory).cast("d")
        self._base = page * layout.num_items

    @classmethod
    def private(cls, layout: CounterLayout) -> Self:
        """For the only front end there is."""
        return cls(layout, mmap.mmap(-1, shared_bytes(layout, 1)), num_pages=1)

    @classmethod
    def attach(cls, layout: CounterLayout, fd: int, *, num_pages: int, page: int) -> Self:
        """The memory of `create_shared`, as front end `page` sees it. The descriptor may be closed afterwards."""
        memory = mmap.mmap(fd, shared_bytes(layout, num_pages))
        return cls(layout, memory, num_pages=num_pages, page=page)

    def add(self, metric: CounterSpec, amount: float = 1.0, values: tuple[str, ...] = ()) -> None:
        """Count."""
        self._items[self._base + self.layout.start(metric, values)] += amount

    def observe(self, metric: HistogramSpec, value: float, values: tuple[str, ...] = ()) -> None:
        """Count one value of a distribution."""
        start = self._base + self.layout.start(metric, values)
        self._items[start + bisect_left(metric.bounds, value)] += 1.0
        self._items[start + len(metric.bounds) + 1] += value

    def change(self, metric: GaugeSpec, amount: float) -> None:
        """Add to this front end's part of a gauge, or with a negative amount take away."""
        self._items[self._base + self.layout.start(metric, ())] += amount

    def clear_gauges(self) -> None:
        """This front end has nothing in hand: it begins, or it has died."""
        for metric in self.layout.metrics:
            if isinstance(metric, GaugeSpec):
                self._items[self._base + self.layout.start(metric, ())] = 0.0

    def read(self, metric: MetricSpec, values: tuple[str, ...] = ()) -> list[float]:
        """The items of one series, summed over all front ends."""
        start, num_items = self.layout.start(metric, values), _num_items(metric)
        totals = [0.0] * num_items
        for page in range(self._num_pages):
            base = page * self.layout.num_items + start
            for item in range(num_items):
                totals[item] += self._items[base + item]
        return totals


def shared_bytes(layout: CounterLayout, num_pages: int) -> int:
    """Size of the memory of so many front ends."""
    return layout.num_items * num_pages * _ITEM_BYTES


def create_shared(layout: CounterLayout, num_pages: int) -> int:
    """Memory for the counters of so many front ends; returns its descriptor, to be handed to each and then closed."""
    fd = os.memfd_create("octavo-counters", os.MFD_CLOEXEC)
    os.ftruncate(fd, shared_bytes(layout, num_pages))
    return fd
