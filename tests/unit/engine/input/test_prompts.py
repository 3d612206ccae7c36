from __future__ import annotations

import pytest
from fakes.byte_tokenizer import ByteTokenizer

from octavo.base.errors import ValidationError
from octavo.engine.input.prompts import ChatOptions, Prompt, list_conversations, list_prompts, read_prompt, render_chat

TOKENIZER = ByteTokenizer()


class BosTokenizer(ByteTokenizer):
    def encode(self, text, *, add_special_tokens=True):
        return [257, *text.encode()] if add_special_tokens else list(text.encode())


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("ab", Prompt(token_ids=[97, 98], text="ab")),
        ([97, 98], Prompt(token_ids=[97, 98])),
        ({"prompt": "ab", "cache_salt": "s"}, Prompt(token_ids=[97, 98], text="ab", cache_salt="s")),
        ({"prompt_token_ids": [1], "prompt": "ab"}, Prompt(token_ids=[1], text="ab")),
    ],
)
def test_every_form_of_prompt_becomes_ids(prompt, expected):
    assert read_prompt(prompt, TOKENIZER) == expected


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        (5, "prompt of type int"),
        ({}, 'neither "prompt" nor'),
        ({"prompt": 5}, "prompt=5"),
        ({"prompt": "a", "promt": "b"}, "unknown keys"),
        ({"prompt": "a", "cache_salt": ""}, "cache_salt"),
        ({"prompt_token_ids": "abc"}, "must be a list of ints"),
    ],
)
def test_a_malformed_prompt_is_refused_with_the_reason(prompt, words):
    with pytest.raises(ValidationError, match=words):
        read_prompt(prompt, TOKENIZER)


def test_text_without_a_tokenizer_is_refused():
    with pytest.raises(ValidationError, match="prompt_token_ids"):
        read_prompt("ab", None)


@pytest.mark.parametrize("one", ["a", [1, 2], (1, 2), {"prompt": "a"}])
def test_one_prompt_is_a_list_of_one(one):
    assert list_prompts(one) == [one]


@pytest.mark.parametrize("many", [["a", [1]], [[1]], [{"prompt": "a"}], ("a", "b"), []])
def test_many_prompts_stay_many(many):
    assert list_prompts(many) == list(many)


def test_one_conversation_is_a_list_of_one():
    messages = [{"role": "user", "content": "a"}]
    assert list_conversations(messages) == [messages]
    assert list_conversations([messages, messages]) == [messages, messages]


def test_a_text_gets_special_tokens_and_a_chat_does_not_get_them_twice():
    assert read_prompt("a", BosTokenizer()).token_ids == [257, 97]
    rendered = render_chat([{"role": "user", "content": "a"}], BosTokenizer(), ChatOptions())
    assert rendered.text == "[user]a[assistant]"
    assert rendered.token_ids == list(b"[user]a[assistant]")


def test_template_variables_and_options_reach_the_template():
    options = ChatOptions(add_generation_prompt=False, template_kwargs={"thinking": True})
    assert render_chat([{"role": "user", "content": "a"}], TOKENIZER, options).text == "[('thinking', True)][user]a"


@pytest.mark.parametrize("messages", [[{"content": "no role"}], ["text"], [{"role": 5, "content": ""}]])
def test_a_malformed_message_is_named_by_its_place(messages):
    with pytest.raises(ValidationError, match=r"messages\[0\]"):
        render_chat(messages, TOKENIZER, ChatOptions())


def test_opening_a_turn_and_continuing_one_exclude_each_other():
    with pytest.raises(ValidationError, match="exclude each other"):
        render_chat([{"role": "user", "content": "a"}], TOKENIZER, ChatOptions(continue_final_message=True))


@pytest.mark.parametrize("prompts", [None, 5, b"text"])
def test_what_is_no_prompt_and_no_list_is_refused_by_type(prompts):
    with pytest.raises(ValidationError, match=f"prompts of type {type(prompts).__name__}"):
        list_prompts(prompts)


def test_keys_of_a_prompt_that_are_no_texts_are_unknown():
    with pytest.raises(ValidationError, match="unknown keys"):
        read_prompt({1: 2, "a": 3}, None)


@pytest.mark.parametrize("messages", [None, "hi", {"role": "user", "content": "hi"}])
def test_what_is_no_list_of_messages_is_refused_by_type(messages):
    with pytest.raises(ValidationError, match=f"messages of type {type(messages).__name__}"):
        list_conversations(messages)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"template_kwargs": {"messages": []}}, "chat_template_kwargs"),
        ({"template_kwargs": {"tokenize": True}}, "chat_template_kwargs"),
        ({"template_kwargs": {"self": 1}}, "chat_template_kwargs"),
        ({"template_kwargs": {1: 2}}, "chat_template_kwargs"),
        ({"template_kwargs": [1]}, "chat_template_kwargs"),
        ({"chat_template": 5}, "chat_template"),
    ],
)
def test_chat_options_that_cannot_reach_the_template_are_refused(options, parameter):
    with pytest.raises(ValidationError) as caught:
        render_chat([{"role": "user", "content": "hi"}], ByteTokenizer(), ChatOptions(**options))
    assert caught.value.parameter == parameter
