"""The official client, unchanged."""

import pytest
from fakes.official_clients import openai_client

openai = pytest.importorskip("openai", reason="the client is a development extra")
MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def client(server):
    with openai_client(server) as made:
        yield made


def test_models_are_listed_and_retrieved(client):
    assert [model.id for model in client.models.list()] == ["tiny", "other"]
    assert client.models.retrieve("other").max_model_len == 256
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none/such")


def test_chat_streamed_equals_chat(client):
    fields = {"model": "tiny", "messages": MESSAGES, "max_tokens": 12, "temperature": 0}
    whole = client.chat.completions.create(**fields)
    chunks = list(client.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_completions_streamed_equal_completions(client):
    fields = {"model": "tiny", "prompt": "hello", "max_tokens": 12, "temperature": 1, "seed": 4, "n": 2}
    whole = client.completions.create(**fields)
    texts = {0: "", 1: ""}
    for chunk in client.completions.create(**fields, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert [choice.text for choice in whole.choices] == [texts[0], texts[1]]


def test_errors_are_the_clients_classes(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="tiny", messages=MESSAGES, temperature=9)
    assert refused.value.param == "temperature"
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="none", messages=MESSAGES)
    assert missing.value.code == "model_not_found"


def test_extra_fields_pass_through_extra_body(client):
    answer = client.chat.completions.create(
        model="tiny", messages=MESSAGES, max_tokens=5, extra_body={"ignore_eos": True, "min_tokens": 5, "top_k": 3}
    )
    assert answer.usage.completion_tokens == 5
