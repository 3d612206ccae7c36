from __future__ import annotations

import json

import pytest

from octavo.base.errors import ConfigError
from octavo.bench.samples import RandomShape, draw_random, read_custom, read_sharegpt


def encode(text):
    return list(text.encode())


def test_random_requests_repeat_with_the_seed_and_stay_in_the_vocabulary():
    shape = RandomShape(input_len=8, output_len=4, prefix_len=2)
    first, again = (draw_random(3, shape, vocab_size=50, seed=1) for _ in range(2))
    assert first == again != draw_random(3, shape, vocab_size=50, seed=2)
    assert {len(sample.prompt_token_ids) for sample in first} == {10}
    assert {sample.num_output_tokens for sample in first} == {4}
    assert len({tuple(sample.prompt_token_ids[:2]) for sample in first}) == 1
    assert all(0 <= token_id < 50 for sample in first for token_id in sample.prompt_token_ids)


def test_lengths_vary_within_the_ratio():
    samples = draw_random(50, RandomShape(input_len=10, output_len=10, range_ratio=0.5), vocab_size=50, seed=0)
    lengths = {len(sample.prompt_token_ids) for sample in samples}
    assert min(lengths) >= 5
    assert max(lengths) <= 15
    assert len(lengths) > 3


def test_sharegpt_takes_the_first_two_turns_and_filters_lengths(tmp_path):
    def conversation(*values):
        return {"conversations": [{"value": value} for value in values]}

    path = tmp_path / "sharegpt.json"
    kept = conversation("a question", "an answer", "more")
    dropped = [conversation("abc", "an answer"), conversation("a question", "yes"), conversation("alone")]
    path.write_text(json.dumps([*dropped, conversation("x" * 1025, "answer"), kept]))
    (sample,) = read_sharegpt(path, 10, encode=encode, output_len=None, seed=0)
    assert (bytes(sample.prompt_token_ids), sample.num_output_tokens) == (b"a question", 9)
    assert len(read_sharegpt(path, 10, encode=encode, output_len=5, seed=0)) == 2


def test_custom_reads_json_lines(tmp_path):
    path = tmp_path / "custom.jsonl"
    path.write_text('{"prompt": "ab"}\n\n{"prompt": "c", "output_tokens": 3}\n{"prompt": "d"}\n')
    samples = read_custom(path, 2, encode=encode, output_len=7)
    assert [(bytes(s.prompt_token_ids), s.num_output_tokens) for s in samples] == [(b"ab", 7), (b"c", 3)]


@pytest.mark.parametrize("content", ["{}", "[1", '{"text": "a"}'])
def test_a_file_of_another_form_is_refused_by_name(tmp_path, content):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(ConfigError, match="dataset-path"):
        read_custom(path, 1, encode=encode, output_len=1)
    with pytest.raises(ConfigError, match="dataset-path"):
        read_sharegpt(path, 1, encode=encode, output_len=1, seed=0)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_custom(tmp_path / "none", 1, encode=encode, output_len=1)
