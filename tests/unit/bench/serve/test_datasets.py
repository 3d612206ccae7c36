from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.byte_tokenizer import ByteTokenizer

from octavo.base.errors import ConfigError
from octavo.bench.samples import RandomShape
from octavo.bench.serve.datasets import DATASETS, DatasetOptions, load_samples
from octavo.bench.traces import TraceOptions

DATA = Path(__file__).parents[3] / "data"


class ChatTokenizer(ByteTokenizer):
    chat_template = "yes"


class PlainTokenizer(ByteTokenizer):
    chat_template = None


@pytest.fixture
def custom(tmp_path):
    path = tmp_path / "custom.jsonl"
    path.write_text('{"prompt": "abc"}\n{"prompt": "de", "output_tokens": 4}\n')
    return path


def test_every_dataset_gives_samples(tmp_path, custom):
    sharegpt = tmp_path / "sharegpt.json"
    sharegpt.write_text(json.dumps([{"conversations": [{"value": "a question"}, {"value": "an answer"}]}]))
    paths = {
        "sharegpt": sharegpt,
        "custom": custom,
        "mooncake": DATA / "mooncake" / "conversation_trace_head.jsonl",
        "azure": DATA / "azure-llm-2023" / "AzureLLMInferenceTrace_conv_head.csv",
    }
    for name in DATASETS:
        options = DatasetOptions(
            name=name, path=paths.get(name), num_prompts=12, random=RandomShape(input_len=9, output_len=2)
        )
        samples = load_samples(options, PlainTokenizer())
        assert len(samples) == 12
        assert all(sample.num_output_tokens > 0 and sample.prompt_token_ids for sample in samples)


def test_a_small_dataset_is_repeated_unless_told_not_to(custom):
    more = load_samples(DatasetOptions(name="custom", path=custom, num_prompts=7), PlainTokenizer())
    assert len(more) == 7
    assert {sample.text for sample in more} == {"abc", "de"}
    as_is = DatasetOptions(name="custom", path=custom, num_prompts=7, oversamples=False)
    assert [sample.num_output_tokens for sample in load_samples(as_is, PlainTokenizer())] == [256, 4]


@pytest.mark.parametrize(
    ("tokenizer", "options", "text"),
    [
        (ChatTokenizer(), {}, "[user]abc[assistant]"),
        (ChatTokenizer(), {"applies_template": False}, "abc"),
        (ChatTokenizer(), {"needs_text": True}, "abc"),
        (PlainTokenizer(), {}, "abc"),
        (None, {}, "abc"),
    ],
)
def test_custom_prompts_become_messages_for_completions_only(custom, tokenizer, options, text):
    options = DatasetOptions(name="custom", path=custom, num_prompts=1, **options)
    assert load_samples(options, tokenizer)[0].text == text


def test_a_trace_for_a_chat_endpoint_is_text():
    options = DatasetOptions(
        name="mooncake",
        path=DATA / "mooncake" / "conversation_trace_head.jsonl",
        num_prompts=2,
        trace=TraceOptions(max_prompt_tokens=600),
    )
    first, second = load_samples(options, ChatTokenizer())
    assert first.text is None
    assert first.prompt_token_ids[:512] == second.prompt_token_ids[:512]
    first, second = load_samples(
        DatasetOptions(name=options.name, path=options.path, trace=options.trace, needs_text=True), ChatTokenizer()
    )[:2]
    assert first.text[:100] == second.text[:100]


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (DatasetOptions(name="sharegpt"), "--dataset-path"),
        (DatasetOptions(num_prompts=0), "--num-prompts"),
        (DatasetOptions(needs_text=True), "--skip-tokenizer-init"),
        (DatasetOptions(name="sharegpt", path=Path("x")), "--skip-tokenizer-init"),
        (DatasetOptions(name="azure", path=Path("does-not-exist")), "--dataset-path"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_flag(options, flag):
    with pytest.raises(ConfigError, match=flag):
        load_samples(options, None)


def test_an_empty_dataset_is_refused(tmp_path):
    path = tmp_path / "empty"
    path.write_text("")
    with pytest.raises(ConfigError, match="no requests"):
        load_samples(DatasetOptions(name="custom", path=path), None)
