"""Token ids of every oracle prompt, through the model's own template where it is a conversation."""

import json
from pathlib import Path

import pytest

from octavo.loading import open_checkpoint

DATA = Path(__file__).parent.parent / "data"
MODELS = [
    pytest.param("smollm2-135m-instruct", "smollm2_path", marks=pytest.mark.needs_smollm2),
    pytest.param("qwen2.5-coder-0.5b-instruct", "qwen_path", marks=pytest.mark.slow),
    pytest.param("gemma-3-270m", "gemma_path", marks=pytest.mark.slow),
]


def items_of(name):
    return json.loads((DATA / "oracle" / f"{name}.json").read_text())["items"]


def prompt_ids(tokenizer, item):
    if item["kind"] == "chat":
        return tokenizer.apply_chat_template(item["messages"], tokenize=True)
    return tokenizer.encode(item["prompt"])


@pytest.mark.parametrize(("name", "fixture"), MODELS)
def test_prompts_have_the_oracles_ids(name, fixture, request):
    with open_checkpoint(request.getfixturevalue(fixture)) as checkpoint:
        tokenizer = checkpoint.load_tokenizer()
    for item in items_of(name):
        assert prompt_ids(tokenizer, item) == item["prompt_token_ids"], item["id"]


@pytest.mark.parametrize(("name", "fixture"), MODELS)
def test_outputs_decode_to_the_oracles_text(name, fixture, request):
    with open_checkpoint(request.getfixturevalue(fixture)) as checkpoint:
        tokenizer = checkpoint.load_tokenizer()
    for item in items_of(name):
        ids = item["output_token_ids"]
        assert tokenizer.decode(ids) == item["output_text"], item["id"]
        raw = b"".join(tokenizer.id_to_bytes(idx) for idx in ids if not tokenizer.is_special(idx))
        assert raw.decode(errors="replace") == item["output_text"], item["id"]


@pytest.mark.slow
def test_qwen_tokenizes_as_the_vectors_of_llama_cpp(qwen_path):
    texts = (
        (DATA / "llama.cpp" / "ggml-vocab-qwen2.gguf.inp").read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n")
    )
    lines = (DATA / "llama.cpp" / "ggml-vocab-qwen2.gguf.out").read_text().splitlines()
    with open_checkpoint(qwen_path) as checkpoint:
        tokenizer = checkpoint.load_tokenizer()
    assert len(texts) >= len(lines) == 46
    for text, line in zip(texts, lines, strict=False):
        assert tokenizer.encode(text, add_special_tokens=False) == [int(idx) for idx in line.split()], text
