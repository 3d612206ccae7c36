"""The hash model: a runner whose KV is hashes, so that any stale, missing or swapped block changes the text.

The KV of a position is a hash of its token, the salt of its request and the KV of every position it attends to, read
through the block tables that the plans gave. The next token is a function of that hash. Hence the text of a request is
that of its lone run (`lone_run`, which knows no blocks) if and only if every block was the right one at every step.

Requests with structured_outputs, whatever they say, follow a toy grammar: behind some tokens of the output only one
may come (`forced_after`), behind COMPLETE only an end of sequence, behind HOPELESS nothing. A model that jumps returns
forced tokens behind the sampled one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from octavo.proto.failure import Failure
from octavo.proto.kv import KvGroup
from octavo.proto.output import FinishReason
from octavo.proto.plan import NewSequence, StepPlan
from octavo.proto.request import NewRequest
from octavo.proto.result import StepResult, TokenLogprobs
from octavo.proto.sampling import SamplingParams

VOCAB_SIZE = 31
COMPLETE = 7
HOPELESS = 11
DEAD_END = Failure("request", "no token may follow")
Context = tuple[tuple[int, ...], ...]
"""Per group, the KV of the positions attended to."""


def _digest(token_id: int, position: int, salt: str | None, context: Context) -> int:
    return hash((token_id, position, hash_text(salt), context))


def hash_text(text: str | None) -> int:
    """A hash that does not change from process to process, unlike that of str."""
    return -1 if text is None else hash(tuple(text.encode()))


def _first_attended(group: KvGroup, position: int) -> int:
    return 0 if group.window is None else max(0, position - group.window + 1)


def _next_token(digest: int, seed: int, position: int, masked: frozenset[int]) -> int:
    token_id = hash((digest, seed, position)) % VOCAB_SIZE
    while token_id in masked:
        token_id = (token_id + 1) % VOCAB_SIZE
    return token_id


def forced_after(token_id: int) -> int | None:
    """The toy grammar's only choice behind a token of the output; there are chains of two."""
    return (token_id + 7) % VOCAB_SIZE if token_id % 4 == 1 else None


def _choose(
    request: NewRequest | NewSequence, output: Sequence[int], digest: int, position: int
) -> int | Failure | None:
    """The token that follows; a failure: why there is none; None: the text is complete and no end can be written."""
    sampling = request.sampling
    masked = _masked(sampling, request.eos_token_ids, len(output))
    if sampling.structured_outputs is None or not output:
        return _next_token(digest, request.seed, position, masked)
    last = output[-1]
    if last == COMPLETE:
        ends = [token_id for token_id in request.eos_token_ids if token_id not in masked]
        return ends[0] if ends else None
    if last == HOPELESS:
        return DEAD_END
    forced = forced_after(last)
    if forced is None:
        return _next_token(digest, request.seed, position, masked)
    return DEAD_END if forced in masked else forced


def _masked(sampling: SamplingParams, eos: Sequence[int], num_output: int) -> frozenset[int]:
    if num_output >= sampling.min_tokens:
        return frozenset()
    return frozenset(eos).union(sampling.stop_token_ids or ())


def _logprobs(token_id: int, digest: int) -> TokenLogprobs:
    return TokenLogprobs([token_id], [-float(digest % 1009)], [1 + digest % 7])


@dataclass
class LoneRun:
    """What a request yields when nobody else is there."""

    token_ids: list[int]
    finish_reason: FinishReason
    stop_reason: int | None
    prompt_logprobs: list[TokenLogprobs]
    logprobs: list[TokenLogprobs]


def lone_run(request: NewRequest, groups: Sequence[KvGroup], max_model_len: int) -> LoneRun:
    """The text of a request, computed without blocks, steps or company. `request.output_token_ids` is ignored."""
    tokens = list(request.prompt_token_ids)
    num_prompt = len(tokens)
    stored: list[list[int]] = [[] for _ in groups]
    prompt_logprobs: list[TokenLogprobs] = []
    logprobs: list[TokenLogprobs] = []
    while True:
        position = len(stored[0])
        context = tuple(
            tuple(values[_first_attended(group, position) :]) for group, values in zip(groups, stored, strict=True)
        )
        digest = _digest(tokens[position], position, request.cache_salt, context)
        for idx, values in enumerate(stored):
            values.append(hash((digest, idx)))
        if position + 1 < num_prompt:
            prompt_logprobs.append(_logprobs(tokens[position + 1], digest))
            continue
        token_id = _choose(request, tokens[num_prompt:], digest, position)
        if not isinstance(token_id, int):
            reason: FinishReason = "stop" if token_id is None else "error"
            return LoneRun(tokens[num_prompt:], reason, None, prompt_logprobs, logprobs)
        tokens.append(token_id)
        logprobs.append(_logprobs(token_id, digest))
        output = tokens[num_prompt:]
        if token_id in request.eos_token_ids and len(output) > request.sampling.min_tokens:
            return LoneRun(output, "stop", None, prompt_logprobs, logprobs)
        if token_id in (request.sampling.stop_token_ids or ()) and len(output) > request.sampling.min_tokens:
            return LoneRun(output, "stop", token_id, prompt_logprobs, logprobs)
        if len(output) == request.max_tokens or len(tokens) == max_model_len:
            return LoneRun(output, "length", None, prompt_logprobs, logprobs)


@dataclass
class _Row:
    sequence: NewSequence
    tokens: list[int]
    tables: list[dict[int, int]]
    next_start: int | None = None
    digest: int = 0
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)
    end: tuple[Failure | None] | None = None
    """What was found instead of a further token."""


class HashModel:
    """Executes plans in order. Reading what was never written raises AssertionError; reading wrong things shows."""

    def __init__(
        self,
        groups: Sequence[KvGroup],
        *,
        block_size: int,
        salt_of: Callable[[str], str | None] = lambda request_id: None,
        jumps: bool = True,
    ) -> None:
        self._groups = tuple(groups)
        self._block_size = block_size
        self._salt_of = salt_of
        self._jumps = jumps
        self._memory: dict[tuple[int, int], int] = {}
        self._rows: dict[int, _Row] = {}

    @property
    def rows_in_use(self) -> set[int]:
        return set(self._rows)

    def execute(self, plan: StepPlan, *, spoiled: Collection[int] = ()) -> StepResult:
        """Run one step. spoiled: rows in whose blocks something else comes to lie than their KV."""
        for row_idx in plan.freed_rows:
            self._rows.pop(row_idx, None)
        for sequence in plan.new:
            assert sequence.row not in self._rows, f"row {sequence.row} entered twice"
            self._rows[sequence.row] = _Row(sequence, list(sequence.token_ids), [{} for _ in self._groups])
        self._write_tables(plan)
        work = [
            (position, row_idx)
            for row_idx, start, num_tokens in zip(plan.rows, plan.starts, plan.num_tokens, strict=True)
            for position in range(start, start + num_tokens)
            if self._rows[row_idx].end is None
        ]
        assert len(set(plan.rows)) == len(plan.rows), "a row is twice in one step"
        # By position, so that what one row of this step shares with another is written before it is read.
        for position, row_idx in sorted(work):
            self._compute(self._rows[row_idx], position, is_spoiled=row_idx in spoiled)
        return self._result(plan)

    def _write_tables(self, plan: StepPlan) -> None:
        starts = dict(zip(plan.rows, plan.starts, strict=True))
        for row_idx, group, first, block_ids in plan.new_blocks:
            for idx, block_id in enumerate(block_ids):
                logical = first + idx
                self._rows[row_idx].tables[group][logical] = block_id
                is_fresh = logical * self._block_size >= starts[row_idx]
                if is_fresh and block_id != 0:
                    for offset in range(self._block_size):
                        self._memory.pop((block_id, offset), None)
        for row_idx, start, num_tokens in zip(plan.rows, plan.starts, plan.num_tokens, strict=True):
            row = self._rows[row_idx]
            assert num_tokens > 0, "an entry without tokens"
            assert row.next_start in (None, start), f"row {row_idx} starts at {start}, not at {row.next_start}"
            row.next_start = start + num_tokens
            row.prompt_logprobs = []

    def _compute(self, row: _Row, position: int, *, is_spoiled: bool) -> None:
        assert position < len(row.tokens), f"{row.sequence.request_id}: token {position} is unknown"
        context = tuple(
            tuple(self._read(row, idx, at) for at in range(_first_attended(group, position), position))
            for idx, group in enumerate(self._groups)
        )
        salt = self._salt_of(row.sequence.request_id)
        row.digest = _digest(row.tokens[position], position, salt, context) ^ is_spoiled
        for idx in range(len(self._groups)):
            block_id = row.tables[idx].get(position // self._block_size, 0)
            assert block_id != 0, f"{row.sequence.request_id}: no block to write position {position} to"
            self._memory[block_id, position % self._block_size] = hash((row.digest, idx))
        if position + 1 < row.sequence.num_prompt_tokens:
            row.prompt_logprobs.append(_logprobs(row.tokens[position + 1], row.digest))

    def _read(self, row: _Row, group: int, position: int) -> int:
        block_id = row.tables[group].get(position // self._block_size, 0)
        assert block_id != 0, f"{row.sequence.request_id}: position {position} of group {group} was let go"
        value = self._memory.get((block_id, position % self._block_size))
        assert value is not None, f"{row.sequence.request_id}: position {position} was never written"
        return value

    def _result(self, plan: StepPlan) -> StepResult:
        token_ids: list[list[int]] = []
        logprobs: dict[int, list[TokenLogprobs]] = {}
        prompt_logprobs: dict[int, list[TokenLogprobs]] = {}
        ends: dict[int, Failure | None] = {}
        for idx, row_idx in enumerate(plan.rows):
            row = self._rows[row_idx]
            sequence = row.sequence
            if row.end is not None:
                token_ids.append([])
                ends[idx] = row.end[0]
                continue
            if sequence.sampling.prompt_logprobs is not None and row.prompt_logprobs:
                prompt_logprobs[idx] = row.prompt_logprobs
            if not plan.samples[idx]:
                token_ids.append([])
                continue
            end = plan.starts[idx] + plan.num_tokens[idx]
            if end < len(row.tokens):
                assert sequence.sampling.structured_outputs, f"{sequence.request_id}: samples at {end}, which is known"
                token_ids.append(row.tokens[end:])
                continue
            token_id = _choose(sequence, row.tokens[sequence.num_prompt_tokens :], row.digest, end - 1)
            if not isinstance(token_id, int):
                token_ids.append([])
                ends[idx] = token_id
                row.end = (token_id,)
                continue
            row.tokens += [token_id, *self._forced(sequence, token_id)]
            token_ids.append(row.tokens[end:])
            if sequence.sampling.logprobs is not None:
                logprobs[idx] = [_logprobs(token_id, row.digest)]
        return StepResult(
            step_id=plan.step_id,
            epoch=plan.epoch,
            token_ids=token_ids,
            logprobs=logprobs,
            prompt_logprobs=prompt_logprobs,
            ends=ends,
        )

    def _forced(self, sequence: NewSequence, token_id: int) -> list[int]:
        """What the toy grammar leaves no choice about behind a token just sampled."""
        sampling = sequence.sampling
        if not self._jumps or not sampling.structured_outputs or sampling.wants_logprobs or sampling.min_tokens:
            return []
        forced: list[int] = []
        while (following := forced_after(token_id)) is not None:
            forced.append(following)
            token_id = following
        return forced
