from __future__ import annotations

import pytest

from octavo.bench.samples import Sample
from octavo.bench.serve.backends import BACKENDS, BodyOptions, describe_error

IDS, TEXT = Sample([1, 2], 7), Sample([1, 2], 7, text="hello")


def test_a_completions_body_streams_with_usage():
    body = BACKENDS["openai"].make_body(TEXT, BodyOptions(models=("m",)), "m")
    assert body == {
        "model": "m",
        "prompt": "hello",
        "max_tokens": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_sample_without_text_is_sent_as_token_ids():
    assert BACKENDS["vllm"].make_body(IDS, BodyOptions(models=("m",)), "m")["prompt"] == [1, 2]


def test_a_chat_body_has_one_message():
    options = BodyOptions(models=("m",), logprobs=3, ignore_eos=True)
    body = BACKENDS["openai-chat"].make_body(TEXT, options, "m")
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert (body["max_completion_tokens"], body["logprobs"], body["top_logprobs"]) == (7, True, 3)
    assert body["ignore_eos"] is True


def test_extra_fields_win():
    options = BodyOptions(models=("m",), logprobs=1, extra={"max_tokens": 2, "temperature": 0.5})
    body = BACKENDS["octavo"].make_body(TEXT, options, "m")
    assert (body["max_tokens"], body["temperature"], body["logprobs"]) == (2, 0.5, 1)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": {"message": "no"}}', "no"),
        (b'{"object": "error", "message": "no"}', "no"),
        (b'{"error": "no"}', "no"),
        (b'{"detail": 1}', "{'detail': 1}"),
        (b"<html>", "<html>"),
        (b"[1]", "[1]"),
        (b"", ""),
        (b"x" * 1000, "x" * 500),
    ],
)
def test_an_error_is_described_by_its_message(body, text):
    assert describe_error(body) == text
