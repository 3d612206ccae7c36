import pytest

from octavo.parsers.registry import reasoning_format
from octavo.server.turn_reasoning import ReasoningCounter, ReasoningState, find_state

START, END = "<think>", "</think>"
QWEN, DEEPSEEK = reasoning_format("qwen3"), reasoning_format("deepseek_r1")


def count(pieces, *, is_inside):
    counter = ReasoningCounter(lambda i: pieces[i].encode(), START, END, is_inside=is_inside)
    for index in range(len(pieces)):
        counter.feed([index])
    whole = ReasoningCounter(lambda i: pieces[i].encode(), START, END, is_inside=is_inside)
    whole.feed(range(len(pieces)))
    assert counter.num_tokens == whole.num_tokens
    return counter.num_tokens


@pytest.mark.parametrize(
    ("prompt", "form", "state"),
    [
        ("<|im_start|>assistant\n", QWEN, ReasoningState.OPEN),
        ("<|im_start|>assistant\n<think>\n", QWEN, ReasoningState.INSIDE),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", QWEN, ReasoningState.OVER),
        ("<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n", QWEN, ReasoningState.OPEN),
        ("<｜Assistant｜>", DEEPSEEK, ReasoningState.INSIDE),
        ("<｜Assistant｜></think>", DEEPSEEK, ReasoningState.OVER),
    ],
)
def test_the_end_of_a_prompt_says_whether_the_model_reasons(prompt, form, state):
    assert find_state(prompt, form) is state


@pytest.mark.parametrize(
    ("pieces", "is_inside", "num_tokens"),
    [
        (["<think>", "a", "b", "</think>", "c"], False, 2),
        (["\n", "<think>", "a", "</think>", "c", "d"], False, 1),
        (["a", "<think>", "b", "</think>"], False, 0),
        (["a", "b", "</think>", "c"], True, 2),
        (["a", "b", "c"], True, 3),
        (["a", "<", "/think", ">", "c"], True, 1),
        (["a", "<", "<", "/think", ">"], True, 2),
        (["a</", "think>b"], True, 1),
        (["a", "</thi", "x", "</think>"], True, 3),
        (["<th", "ink>", "a", "</think>"], False, 1),
        ([], True, 0),
    ],
)
def test_tokens_of_reasoning_are_counted_without_its_markers(pieces, is_inside, num_tokens):
    assert count(pieces, is_inside=is_inside) == num_tokens
