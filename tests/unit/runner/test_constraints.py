"""Constrained sequences in the runner, over a toy grammar and a model that reads its history from the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakes.fake_model import FULL, VOCAB, FakeModel, FakeOps, expected_logits, make_cache_spec
from fakes.plans import blocks_for, plan, sequence
from fakes.toy_grammar import ToyGrammars, any_of, constrained, one_of

from octavo.proto.failure import Failure
from octavo.proto.result import StepResult
from octavo.proto.sampling import SamplingParams, StructuredOutputsParams
from octavo.runner import ModelRunner
from octavo.runner.constraints import NOTHING_LEFT

EOS = 90
OTHER_END = 91
PROMPT = [11, 12, 13]


def make_runner(grammars: ToyGrammars | None = None, *, max_model_len: int = 32) -> ModelRunner:
    spec = make_cache_spec(groups=(FULL,), num_blocks=1 + 4 * 8)
    return ModelRunner(
        FakeModel(),
        FakeOps(),
        spec,
        max_num_seqs=4,
        max_model_len=max_model_len,
        max_num_batched_tokens=64,
        grammars=grammars or ToyGrammars([EOS, OTHER_END]),
    )


def enter(
    runner: ModelRunner,
    sampling: SamplingParams,
    *,
    output: list[int] | None = None,
    num_blocks: int = 8,
    **fields: Any,
) -> StepResult:
    """The first step of a sequence in row 0."""
    tokens = PROMPT + (output or [])
    new = sequence(0, tokens, num_prompt=len(PROMPT), sampling=sampling, **{"eos_token_ids": (EOS,), **fields})
    return runner.execute(plan(1, [(0, 0, len(tokens), True)], new=[new], new_blocks=blocks_for(0, num_blocks)))


def text_of(
    runner: ModelRunner, sampling: SamplingParams, *, num_steps: int = 12, **fields: Any
) -> tuple[list[int], Any]:
    """(tokens, what ended them) of row 0: an end token, StepResult.ends, or nothing."""
    result = enter(runner, sampling, **fields)
    text: list[int] = []
    for step_id in range(2, 2 + num_steps):
        assert not result.failed
        text += result.token_ids[0]
        if 0 in result.ends:
            return text, result.ends[0]
        if text[-1] in (EOS, OTHER_END):
            return text, text[-1]
        start = len(PROMPT) + len(text) - len(result.token_ids[0])
        result = runner.execute(plan(step_id, [(0, start, len(result.token_ids[0]), True)]))
    return text, "goes on"


def best_of(tokens: list[int], allowed: list[int]) -> int:
    """The greedy choice among some tokens, from the exact logits."""
    logits = expected_logits(tokens)
    return max(allowed, key=lambda token_id: (logits[token_id], -token_id))


def test_a_constrained_text_is_the_best_that_its_grammar_allows() -> None:
    text, end = text_of(make_runner(), constrained(any_of(20, 21, 22)))
    for idx, token_id in enumerate(text):
        assert token_id == best_of(PROMPT + text[:idx], [20, 21, 22, EOS, OTHER_END])
    assert set(text) - {EOS, OTHER_END}
    assert end in (EOS, OTHER_END, "goes on")


def test_a_complete_text_ends_with_an_end_token() -> None:
    text, end = text_of(make_runner(), constrained(one_of([20, 21, 22])))
    assert text[:3] == [20, 21, 22]
    assert end in (EOS, OTHER_END)


@pytest.mark.parametrize("ends", [(EOS,), (EOS, OTHER_END)])
def test_only_ends_that_would_end_the_text_are_written(ends: tuple[int, ...]) -> None:
    sampling = constrained(one_of([20]), stop_token_ids=list(ends[1:]))
    text, _ = text_of(make_runner(), sampling)
    assert text == [20, best_of([*PROMPT, 20], list(ends))]


def test_without_an_end_token_a_complete_text_ends_by_itself() -> None:
    """ignore_eos: the request has no end tokens."""
    assert text_of(make_runner(), constrained(one_of([20, 21, 22])), eos_token_ids=()) == ([20, 21, 22], None)


def test_without_an_end_token_an_open_text_goes_on() -> None:
    text, end = text_of(make_runner(), constrained(any_of(20, 21)), eos_token_ids=())
    assert (len(text), set(text) <= {20, 21}, end) == (12, True, "goes on")


def test_a_text_that_is_complete_before_min_tokens_ends_all_the_same() -> None:
    assert text_of(make_runner(), constrained(one_of([20, 21]), min_tokens=5)) == ([20, 21], None)


def test_min_tokens_keep_an_open_text_going() -> None:
    text, _ = text_of(make_runner(), constrained(any_of(20), min_tokens=4))
    assert text[:4] == [20] * 4


def test_a_complete_text_that_enters_again_ends_without_a_token() -> None:
    result = enter(make_runner(), constrained(one_of([20])), output=[20], eos_token_ids=())
    assert (result.token_ids, result.ends, result.failed) == ([[]], {0: None}, {})


def test_a_dead_end_names_itself_and_fails_nobody() -> None:
    runner = make_runner()
    new = [
        sequence(0, PROMPT, sampling=constrained(one_of([20, 21]), bad_words_token_ids=[[20]])),
        sequence(1, PROMPT),
    ]
    blocks = [*blocks_for(0, 8), *blocks_for(1, 8)]
    result = runner.execute(plan(1, [(0, 0, 3, True), (1, 0, 3, True)], new=new, new_blocks=blocks))
    assert result.token_ids == [[], [int(np.argmax(expected_logits(PROMPT)))]]
    assert result.ends[0] == NOTHING_LEFT
    assert not result.failed
    behind = runner.execute(plan(2, [(0, 3, 1, True), (1, 3, 1, True)]))
    assert behind.ends == result.ends
    assert len(behind.token_ids[1]) == 1


def test_a_grammar_that_refuses_a_sampled_token_ends_its_text_with_that_error() -> None:
    text, end = text_of(make_runner(), constrained(StructuredOutputsParams(regex="lost")), eos_token_ids=())
    assert len(text) == 2
    assert end == Failure("request", f"token {text[1]} is not allowed behind [{text[0]}]")


def test_a_mask_that_cannot_be_made_ends_its_text_with_that_error() -> None:
    assert text_of(make_runner(), constrained(StructuredOutputsParams(regex="blocked"))) == (
        [],
        Failure("request", "a limit is reached"),
    )


def test_a_sequence_whose_grammar_refuses_its_earlier_output_ends_alone_and_is_logged_as_a_bug(caplog) -> None:
    result = enter(make_runner(), constrained(one_of([20])), output=[21])
    assert result.failed == {0: Failure("request", "token 21 is not allowed behind []")}
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "request r0: a bug: its grammar refuses its 1 tokens of earlier output" in record.getMessage()


def test_a_runner_without_grammars_says_so() -> None:
    runner = ModelRunner(
        FakeModel(),
        FakeOps(),
        make_cache_spec(num_blocks=33),
        max_num_seqs=4,
        max_model_len=32,
        max_num_batched_tokens=64,
    )
    failure = enter(runner, constrained(one_of([20]))).failed[0]
    assert failure.kind == "internal"
    assert "no grammars" in failure.text


# ---- forced tokens --------------------------------------------------------------------------------------------------


def test_forced_tokens_come_with_the_sampled_one() -> None:
    result = enter(make_runner(), constrained(one_of([20, 30, 31, 32], [21, 40, 41])))
    first = best_of(PROMPT, [20, 21])
    assert result.token_ids == [[20, 30, 31, 32] if first == 20 else [21, 40, 41]]


@pytest.mark.parametrize(
    "extra",
    [{"logprobs": 1}, {"allowed_token_ids": [20, 21, 22, EOS]}, {"min_tokens": 1}, {"bad_words_token_ids": [[5]]}],
)
def test_tokens_that_others_have_a_say_in_are_taken_one_by_one(extra: dict[str, Any]) -> None:
    runner = make_runner()
    sampling = constrained(one_of([20, 21, 22]), **extra)
    assert enter(runner, sampling).token_ids == [[20]]
    assert runner.execute(plan(2, [(0, 3, 1, True)])).token_ids == [[21]]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_jumping_changes_no_token(temperature: float) -> None:
    texts = one_of([20, 30, 31, 20], [21, 40, 41, 42, 43], [21, 40, 41, 44], [22])
    for seed in range(8):
        sampling = constrained(texts, temperature=temperature)
        jumping = text_of(make_runner(), sampling, seed=seed)
        stepping = text_of(make_runner(), sampling.clone(logprobs=0), seed=seed)
        assert jumping == stepping


def test_forced_tokens_stop_at_the_end_of_the_row() -> None:
    runner = make_runner(max_model_len=6)
    result = enter(runner, constrained(one_of(list(range(20, 40)))), num_blocks=2)
    assert result.token_ids == [[20, 21, 22]]
    assert runner.execute(plan(2, [(0, 3, 3, True)])).token_ids == [[23]]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_steps_planned_before_a_jump_answer_with_what_is_known(depth: int) -> None:
    """Each step computes one token, as if planned without knowledge of the forced ones."""
    runner = make_runner()
    text = [20, 21, 22, 23]
    result = enter(runner, constrained(one_of(text)))
    assert result.token_ids == [text]
    for idx in range(depth):
        result = runner.execute(plan(2 + idx, [(0, 3 + idx, 1, True)]))
        assert result.token_ids == [text[idx + 1 :]]
    result = runner.execute(plan(9, [(0, 3 + depth, 4 - depth, True)]))
    assert result.token_ids == [[best_of(PROMPT + text, [EOS])]]


# ---- reasoning ------------------------------------------------------------------------------------------------------


def free_text(num_tokens: int) -> list[int]:
    tokens = list(PROMPT)
    for _ in range(num_tokens):
        tokens.append(int(np.argmax(expected_logits(tokens))))
    return tokens[len(PROMPT) :]


def test_a_constraint_begins_behind_its_marker() -> None:
    free = free_text(4)
    text, end = text_of(make_runner(), constrained(one_of([20, 21]), structured_after=free[2:4]))
    assert text[:6] == [*free, 20, 21]
    assert end == EOS


def test_a_spent_budget_ends_reasoning_and_the_constraint_begins() -> None:
    free = free_text(3)
    sampling = constrained(
        one_of([20, 21]), structured_after=[80, 81], thinking_token_budget=3, thinking_end_token_ids=[80, 81]
    )
    assert text_of(make_runner(), sampling, eos_token_ids=(EOS,))[0] == [*free, 80, 81, 20, 21, EOS]


def test_a_budget_needs_no_grammar() -> None:
    sampling = SamplingParams(temperature=0.0, thinking_token_budget=0, thinking_end_token_ids=[80])
    text, _ = text_of(make_runner(), sampling, num_steps=4)
    assert text[0] == 80
    assert text[1] == int(np.argmax(expected_logits([*PROMPT, 80])))


@pytest.mark.parametrize("num_known", range(7))
def test_a_sequence_that_enters_again_goes_on_as_before(num_known: int) -> None:
    free = free_text(2)
    sampling = constrained(
        one_of([20, 21, 22], [30, 31]), structured_after=[80], thinking_token_budget=2, thinking_end_token_ids=[80]
    )
    whole, end = text_of(make_runner(), sampling)
    assert whole[:3] == [*free, 80]
    assert end == EOS
    known = whole[: min(num_known, len(whole) - 1)]
    runner = make_runner()
    result = enter(runner, sampling, output=known)
    text = known + result.token_ids[0]
    step_id = 2
    while text[-1] != EOS:
        num_new = len(result.token_ids[0])
        result = runner.execute(plan(step_id, [(0, len(PROMPT) + len(text) - num_new, num_new, True)]))
        text += result.token_ids[0]
        step_id += 1
    assert text == whole


def test_masks_cover_the_whole_vocabulary() -> None:
    text, _ = text_of(make_runner(), constrained(any_of(VOCAB - 1)), eos_token_ids=(), num_steps=2)
    assert text == [VOCAB - 1] * 2
