import pytest

ROUTE = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]


def chat(server, messages=HELLO, **fields):
    return server.post(ROUTE, {"messages": messages, "max_tokens": 4, "temperature": 0} | fields)


def answer_of(server, messages=HELLO, **fields):
    answer = chat(server, messages, **fields)
    assert answer.status == 200, answer.body
    return answer.json


def prompt_of(server, messages=HELLO, **fields):
    return answer_of(server, messages, return_prompt_text=True, **fields)["prompt_text"]


def test_an_answer_has_every_field_of_the_contract(server):
    answer = answer_of(server)
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    (choice,) = answer["choices"]
    assert set(choice) == {"index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids"}
    assert choice["message"]["role"] == "assistant"
    assert isinstance(choice["message"]["content"], str)
    assert "tool_calls" not in choice["message"]


def test_an_answer_may_take_the_rest_of_the_context(server):
    answer = answer_of(server, max_tokens=None, ignore_eos=True)
    assert answer["usage"]["total_tokens"] == 256
    assert answer["choices"][0]["finish_reason"] == "length"


def test_max_completion_tokens_wins_over_its_old_name(server):
    answer = answer_of(server, max_tokens=9, max_completion_tokens=2, ignore_eos=True)
    assert answer["usage"]["completion_tokens"] == 2


def test_logprobs_hold_tokens_bytes_and_the_best_in_order(server):
    choice = answer_of(server, logprobs=True, top_logprobs=3, temperature=1, seed=2)["choices"][0]
    for entry in choice["logprobs"]["content"]:
        assert set(entry) == {"token", "logprob", "bytes", "top_logprobs"}
        assert len(entry["top_logprobs"]) == 3
        values = [best["logprob"] for best in entry["top_logprobs"]]
        assert values == sorted(values, reverse=True)
    spelled = bytes(byte for entry in choice["logprobs"]["content"] for byte in entry["bytes"])
    assert spelled.decode(errors="replace") == choice["message"]["content"]


def test_logprobs_without_top_logprobs_name_the_token_alone(server):
    content = answer_of(server, logprobs=True)["choices"][0]["logprobs"]["content"]
    assert all(entry["top_logprobs"] == [] for entry in content)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"prompt_logprobs": 1, "stream": True}, "prompt_logprobs"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"logprobs": 3}, "logprobs"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message"),
        ({"chat_template": "{{ 7 }}"}, "chat_template"),
        ({"chat_template_kwargs": {"chat_template": "{{ 7 }}"}}, "chat_template_kwargs"),
        ({"tools": []}, "tools"),
        ({"functions": [{}]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"response_format": {"type": "json"}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_is_named_by_its_field(server, fields, param):
    answer = chat(server, **fields)
    assert (answer.status, answer.error["param"]) == (400, param), answer.body


TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("choice", [None, "auto"])
def test_tools_of_the_models_choice_need_a_parser(server, choice):
    answer = chat(server, tools=[TOOL], tool_choice=choice)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_feature", "tool_choice")


def test_tools_may_be_shown_when_none_is_to_be_called(server):
    assert answer_of(server, tools=[TOOL], tool_choice="none")


def test_parts_of_a_text_are_joined(server):
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert "one\ntwo<|im_end|>" in prompt_of(server, [{"role": "user", "content": parts}])


@pytest.mark.parametrize(
    "part", [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/"}}, {"type": "video"}, {}, 5]
)
def test_what_is_no_text_is_refused_by_its_place(server, part):
    answer = chat(server, [{"role": "user", "content": "a"}, {"role": "user", "content": [part]}])
    assert answer.status == 400
    assert "messages[1].content[0]" in answer.error["message"]


def test_a_final_message_is_continued(server):
    messages = [*HELLO, {"role": "assistant", "content": "Well,"}]
    prompt = prompt_of(server, messages, continue_final_message=True)
    assert prompt.endswith("<|im_start|>assistant\nWell,")


def test_echo_puts_the_continued_message_before_the_answer(server):
    messages = [*HELLO, {"role": "assistant", "content": "Well,"}]
    fields = {"continue_final_message": True, "add_generation_prompt": False}
    plain = answer_of(server, messages, **fields)["choices"][0]["message"]["content"]
    assert answer_of(server, messages, echo=True, **fields)["choices"][0]["message"]["content"] == "Well," + plain


def test_without_a_generation_prompt_none_is_added(server):
    assert prompt_of(server, add_generation_prompt=False).endswith("<|im_end|>\n")


def test_the_prompt_is_tokenized_as_tokenize_says(server):
    tokens = server.post("/tokenize", {"messages": HELLO}).json["tokens"]
    assert answer_of(server, return_token_ids=True)["prompt_token_ids"] == tokens
