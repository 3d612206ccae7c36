"""Requests of recorded traces: when they came, how long they were, which prefixes they shared.

Owns: the formats of Mooncake's and Azure's public traces, prompts made to fit.   Does not own: sending on time.
A trace has no text. Its prompts are random token ids; blocks with equal hash ids become equal tokens, so that prompts
share exactly the prefixes that the trace's did. Prompts are made when asked for: a trace is larger as tokens than as
a file by far.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import overload

import numpy as np

from octavo.base.errors import ConfigError, ConfigProblem
from octavo.base.units import ceil_div
from octavo.bench.samples import Sample, read_text

MOONCAKE_BLOCK_TOKENS = 512
MOONCAKE_SECONDS = 1e-3
"""Of one unit of its timestamps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRow:
    """One request of a trace. Lengths in tokens."""

    arrival_s: float
    """From the trace's first request."""
    num_prompt_tokens: int
    num_output_tokens: int
    hash_ids: tuple[int, ...] = ()
    """One per block of the prompt; equal ids mean equal tokens. Empty: no prefix is shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """How a trace is replayed."""

    time_scale: float = 1.0
    """Arrival times are multiplied by this: 0.5 replays twice as fast."""
    max_prompt_tokens: int | None = None
    """Longer prompts are cut to this; shared prefixes stay shared."""
    max_output_tokens: int | None = None
    block_tokens: int = MOONCAKE_BLOCK_TOKENS
    """Tokens per hash id."""


def read_mooncake(path: Path, num_rows: int, *, unit_s: float = MOONCAKE_SECONDS) -> list[TraceRow]:
    """The first rows of a JSON lines file with timestamp, input_length, output_length, hash_ids. Raises ConfigError.

    Format: github.com/kvcache-ai/Mooncake, FAST25-release. `unit_s`: seconds per unit of the timestamps.
    """
    rows: list[TraceRow] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if len(rows) == num_rows:
            break
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            row = TraceRow(
                arrival_s=float(entry["timestamp"]) * unit_s,
                num_prompt_tokens=int(entry["input_length"]),
                num_output_tokens=int(entry["output_length"]),
                hash_ids=tuple(map(int, entry.get("hash_ids", ()))),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            wanted = '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}'
            raise _wrong(path, f"line {number} is not like {wanted}") from None
        rows.append(row)
    return _from_first(rows, path)


def read_azure(path: Path, num_rows: int) -> list[TraceRow]:
    """The first rows of a CSV file with TIMESTAMP, ContextTokens, GeneratedTokens. Raises ConfigError.

    Format: github.com/Azure/AzurePublicDataset, LLM inference traces of 2023 (Patel et al., Splitwise, ISCA 2024).
    """
    rows: list[TraceRow] = []
    for number, entry in enumerate(csv.DictReader(read_text(path).splitlines()), start=2):
        if len(rows) == num_rows:
            break
        try:
            row = TraceRow(
                arrival_s=_azure_seconds(entry["TIMESTAMP"]),
                num_prompt_tokens=int(entry["ContextTokens"]),
                num_output_tokens=int(entry["GeneratedTokens"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _wrong(path, f"line {number} is not like 2023-11-16 18:15:46.6805900,374,44") from None
        rows.append(row)
    return _from_first(rows, path)


class TraceSamples(Sequence[Sample]):
    """The requests of a trace. An item is made anew each time it is asked for, always the same.

    `token_ids` is what tokens are drawn from; `decode` makes text of them, for endpoints that take no ids.
    """

    def __init__(
        self,
        rows: Sequence[TraceRow],
        options: TraceOptions,
        *,
        token_ids: np.ndarray,
        decode: Callable[[list[int]], str] | None,
        seed: int,
    ) -> None:
        self._rows = rows
        self._options = options
        self._token_ids = token_ids
        self._decode = decode
        self._seed = seed

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        row = self._rows[index]
        length = _capped(row.num_prompt_tokens, self._options.max_prompt_tokens)
        blocks = list(self._blocks(row, index % len(self), length))
        return Sample(
            [token_id for block in blocks for token_id in block],
            _capped(row.num_output_tokens, self._options.max_output_tokens),
            # Block by block: equal blocks are equal text, whatever stands around them.
            text=None if self._decode is None else "".join(map(self._decode, blocks)),
        )

    @property
    def arrivals_s(self) -> list[float]:
        """When each is due, from the start of the run."""
        return [row.arrival_s * self._options.time_scale for row in self._rows]

    def _blocks(self, row: TraceRow, index: int, length: int) -> Iterator[list[int]]:
        if not row.hash_ids:
            # Namespace 1: no prompt of such a row shares a block with any other.
            yield self._draw((self._seed, 1, index), length)
            return
        size = self._options.block_tokens
        for block_idx in range(ceil_div(length, size)):
            tokens = self._draw((self._seed, 0, row.hash_ids[block_idx]), size)
            yield tokens[: length - block_idx * size]

    def _draw(self, key: tuple[int, ...], num_tokens: int) -> list[int]:
        places = np.random.default_rng(key).integers(0, len(self._token_ids), num_tokens)
        tokens: list[int] = self._token_ids[places].tolist()
        return tokens


def check_blocks(rows: Sequence[TraceRow], block_tokens: int, path: Path) -> None:
    """Raises ConfigError when some row has too few hash ids for its length."""
    for number, row in enumerate(rows, start=1):
        if row.hash_ids and len(row.hash_ids) < ceil_div(row.num_prompt_tokens, block_tokens):
            raise _wrong(
                path,
                f"request {number} has {len(row.hash_ids)} hash ids for {row.num_prompt_tokens} tokens: not blocks of "
                f"{block_tokens}; see --trace-block-tokens",
            )


def _azure_seconds(text: str) -> float:
    # Seven decimals: one more than datetime reads.
    whole, _, fraction = text.partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{fraction or 0}")


def _from_first(rows: list[TraceRow], path: Path) -> list[TraceRow]:
    """In order of arrival, counted from the first."""
    if not rows:
        raise _wrong(path, "has no requests")
    for number, row in enumerate(rows, start=1):
        if row.num_prompt_tokens < 1 or row.num_output_tokens < 1:
            raise _wrong(path, f"request {number} has {row.num_prompt_tokens} and {row.num_output_tokens} tokens")
        if min(row.hash_ids, default=0) < 0:
            raise _wrong(path, f"request {number} has a hash id below 0")
    first_s = min(row.arrival_s for row in rows)
    return [
        TraceRow(
            arrival_s=row.arrival_s - first_s,
            num_prompt_tokens=row.num_prompt_tokens,
            num_output_tokens=row.num_output_tokens,
            hash_ids=row.hash_ids,
        )
        for row in sorted(rows, key=lambda row: row.arrival_s)
    ]


def _capped(length: int, most: int | None) -> int:
    return length if most is None else min(length, most)


def _wrong(path: Path, what: str) -> ConfigError:
    return ConfigError([ConfigProblem("--dataset-path", str(path), what)])
