"""The parameters of one step's sampling, gathered from the rows, and its outcome as StepResult wants it.

Owns: SampleBatch of a step.   Does not own: how a token is chosen (the op `sample`), the rows' constants.
Invariant: what a row is given depends on its own sequence and position only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from octavo.kernels.ops import FloatArray, IntArray, SampleBatch
from octavo.proto.result import TokenLogprobs
from octavo.runner.rows import TokenRows
from octavo.runner.sampling_table import Bias, SamplingTable

History = tuple[IntArray, IntArray]


def build_sample_batch(
    rows_idx: IntArray,
    positions: IntArray,
    rows: TokenRows,
    table: SamplingTable,
    masks: Mapping[int, IntArray],
) -> SampleBatch:
    """The parameters of rows `rows_idx` [R], each sampling the token at absolute position `positions` [R].

    masks: place in R -> bits over the vocabulary, for rows that have such a mask. All tokens before these positions
    must be known. Python touches only rows that are special.
    """
    num_rows = len(rows_idx)
    history: list[History | None] = [None] * num_rows
    bias: list[Bias | None] = [None] * num_rows
    allowed: list[IntArray | None] = [None] * num_rows
    listed: list[IntArray | None] = [None] * num_rows
    for place in np.flatnonzero(table.is_special[rows_idx]).tolist():
        row = int(rows_idx[place])
        special = table.specials[row]
        num_prompt = int(rows.num_prompt[row])
        output_ids = rows.token_ids[row, num_prompt : positions[place]]
        if special.has_penalties:
            history[place] = (rows.token_ids[row, :num_prompt], output_ids)
        bias[place] = special.bias_after(output_ids)
        allowed[place] = special.allowed
        listed[place] = special.logprob_token_ids
    return SampleBatch(
        temperature=table.temperature[rows_idx],
        top_k=table.top_k[rows_idx],
        top_p=table.top_p[rows_idx],
        min_p=table.min_p[rows_idx],
        repetition_penalty=table.repetition_penalty[rows_idx],
        frequency_penalty=table.frequency_penalty[rows_idx],
        presence_penalty=table.presence_penalty[rows_idx],
        seeds=table.seeds[rows_idx],
        positions=positions.astype(np.int64),
        history=tuple(history),
        bias=tuple(bias),
        allowed=tuple(allowed),
        allowed_bits=tuple(map(masks.get, range(num_rows))) if masks else (None,) * num_rows,
        num_logprobs=table.num_logprobs[rows_idx],
        logprob_token_ids=tuple(listed),
    )


def as_token_logprobs(found: Sequence[IntArray | FloatArray]) -> TokenLogprobs:
    """One row's (ids, logprobs, ranks) as a message."""
    token_ids, logprobs, ranks = found
    return TokenLogprobs(token_ids.tolist(), logprobs.tolist(), ranks.tolist())
