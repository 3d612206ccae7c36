import pytest

ROUTE = "/v1/completions"


def complete(server, **fields):
    answer = server.completion(**fields)
    assert answer.status == 200, answer.body
    return answer.json


def test_a_completion_has_every_field_of_the_contract(server):
    answer = complete(server, prompt="hello", max_tokens=3)
    assert set(answer) == {
        "id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage",
        "kv_transfer_params",
    }  # fmt: skip
    assert answer["object"] == "text_completion"
    assert answer["id"].startswith("cmpl-")
    assert answer["model"] == "tiny"
    assert answer["system_fingerprint"].startswith("octavo-")
    (choice,) = answer["choices"]
    assert set(choice) == {
        "index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids", "prompt_logprobs",
        "prompt_token_ids",
    }  # fmt: skip
    assert (choice["index"], choice["finish_reason"], choice["logprobs"]) == (0, "length", None)
    usage = answer["usage"]
    assert usage["completion_tokens"] == 3
    assert usage["total_tokens"] == usage["prompt_tokens"] + 3
    assert usage["prompt_tokens_details"]["cached_tokens"] >= 0


def test_sixteen_tokens_are_the_default_and_null_means_the_same(server):
    assert complete(server, max_tokens=None, ignore_eos=True)["usage"]["completion_tokens"] == 16


def test_prompts_come_in_four_forms(server):
    ids = server.post("/tokenize", {"prompt": "hi there"}).json["tokens"]
    texts = [
        [choice["text"] for choice in complete(server, prompt=prompt)["choices"]]
        for prompt in ("hi there", ["hi there"], ids, [ids])
    ]
    assert texts == [texts[0]] * 4
    assert len(texts[0]) == 1


def test_choices_of_several_prompts_are_numbered_prompt_by_prompt(server):
    fields = {"n": 2, "temperature": 1, "seed": 3, "max_tokens": 5}
    together = complete(server, prompt=["one", "two", "three"], **fields)
    assert [choice["index"] for choice in together["choices"]] == list(range(6))
    alone = [choice["text"] for choice in complete(server, prompt="two", **fields)["choices"]]
    assert [choice["text"] for choice in together["choices"][2:4]] == alone
    assert together["usage"]["completion_tokens"] == 30


def test_echo_puts_the_prompt_before_the_text_and_its_logprobs(server):
    plain = complete(server, prompt="hello you", logprobs=2)["choices"][0]
    echoed = complete(server, prompt="hello you", logprobs=2, echo=True)["choices"][0]
    assert echoed["text"] == "hello you" + plain["text"]
    lists = echoed["logprobs"]
    num_prompt = len(lists["tokens"]) - 4
    assert lists["token_logprobs"][0] is None
    assert lists["top_logprobs"][0] is None
    assert all(value is not None for value in lists["token_logprobs"][1:])
    assert lists["token_logprobs"][num_prompt:] == pytest.approx(plain["logprobs"]["token_logprobs"], abs=1e-4)
    assert lists["text_offset"] == sorted(lists["text_offset"])


def test_max_tokens_0_with_echo_scores_the_prompt(server):
    answer = complete(server, prompt="hello you", logprobs=1, echo=True, max_tokens=0)
    (choice,) = answer["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("hello you", "length")
    assert answer["usage"]["completion_tokens"] == 0
    assert len(choice["logprobs"]["tokens"]) == answer["usage"]["prompt_tokens"]


def test_max_tokens_0_without_echo_is_an_error(server):
    answer = server.completion(max_tokens=0)
    assert (answer.status, answer.error["param"]) == (400, "max_tokens")


def test_logprobs_are_of_the_sampled_token_and_the_best(server):
    lists = complete(server, logprobs=3, temperature=1, seed=1, max_tokens=8)["choices"][0]["logprobs"]
    assert [len(lists[name]) for name in ("tokens", "token_logprobs", "text_offset", "top_logprobs")] == [8] * 4
    for token, value, best in zip(lists["tokens"], lists["token_logprobs"], lists["top_logprobs"], strict=True):
        assert best[token] >= value
        assert 3 <= len(best) <= 4 or "\ufffd" in best


def test_token_ids_are_returned_on_request(server):
    choice = complete(server, prompt="hi", return_token_ids=True)["choices"][0]
    assert choice["prompt_token_ids"] == server.post("/tokenize", {"prompt": "hi"}).json["tokens"]
    assert len(choice["token_ids"]) == 4


def test_tokens_may_be_named_by_id(server):
    choice = complete(server, logprobs=0, return_tokens_as_token_ids=True, return_token_ids=True)["choices"][0]
    assert choice["logprobs"]["tokens"] == [f"token_id:{i}" for i in choice["token_ids"]]


def test_prompt_logprobs_come_by_token_id(server):
    choice = complete(server, prompt="hello", prompt_logprobs=1, return_token_ids=True)["choices"][0]
    first, *others = choice["prompt_logprobs"]
    assert first is None
    for token_id, entry in zip(choice["prompt_token_ids"][1:], others, strict=True):
        assert set(entry[str(token_id)]) == {"logprob", "rank", "decoded_token"}


def test_a_stop_string_ends_the_text_and_is_the_reason(server):
    text = complete(server, max_tokens=12, ignore_eos=True)["choices"][0]["text"]
    stop = text[3:5]
    choice = complete(server, max_tokens=12, ignore_eos=True, stop=[stop])["choices"][0]
    assert choice["text"] == text[: text.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)


def test_the_prompt_is_cut_on_request(server):
    ids = list(range(5, 45))
    for side, kept in (("left", ids[-8:]), ("right", ids[:8])):
        answer = complete(server, prompt=ids, truncate_prompt_tokens=8, truncation_side=side, return_token_ids=True)
        assert answer["choices"][0]["prompt_token_ids"] == kept


def test_a_prompt_beyond_the_context_is_refused_in_the_words_that_clients_look_for(server):
    answer = server.completion(prompt=[7] * 300, max_tokens=5)
    assert (answer.status, answer.error["param"], answer.error["code"]) == (
        400,
        "input_tokens",
        "context_length_exceeded",
    )
    message = answer.error["message"]
    assert message.startswith("This model's maximum context length is 256 tokens")
    assert "you requested 5 output tokens" in message
    assert "prompt contains 300 input tokens" in message


def test_asking_for_more_than_the_context_is_refused_and_leaving_it_open_is_not(server):
    prompt = [7] * 250
    assert server.completion(prompt=prompt, max_tokens=7).error["param"] == "input_tokens"
    answer = complete(server, prompt=prompt, max_tokens=None, ignore_eos=True)
    assert answer["usage"]["completion_tokens"] == 6


def test_the_same_prompt_again_is_cached_and_a_salt_keeps_it_apart(server):
    prompt = [9, 8] * 50
    counts = [
        complete(server, prompt=prompt, cache_salt=salt)["usage"]["prompt_tokens_details"]["cached_tokens"]
        for salt in ("a", "b", None, "a")
    ]
    assert counts[:3] == [0, 0, 0]
    assert counts[3] > 0


@pytest.mark.parametrize(
    "fields",
    [
        {"use_beam_search": True},
        {"best_of": 3},
        {"suffix": "x"},
        {"thinking_token_budget": 5},
        {"kv_transfer_params": {"do_remote_prefill": True}},
        {"vllm_xargs": {"a": 1}},
        {"prompt_embeds": "x"},
        {"priority": 5},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_cannot_be_honoured_is_refused_by_name(server, fields):
    answer = server.completion(**fields)
    assert answer.status == 400
    assert answer.error["param"] == next(iter(fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "text"}},
        {"best_of": 1},
        {"use_beam_search": False},
        {"length_penalty": 1.0},
        {"priority": 0},
        {"user": "me", "no_such_field": [1, {"a": 2}]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_asks_for_nothing_is_accepted(server, fields):
    assert complete(server, **fields)


@pytest.mark.parametrize(
    ("at_limit", "beyond", "param"),
    [
        ({"n": 128, "temperature": 1, "max_tokens": 1}, {"n": 129, "temperature": 1}, "n"),
        ({"prompt": ["a"] * 64, "max_tokens": 1}, {"prompt": ["a"] * 65}, "prompt"),
        (
            {"prompt": ["a"] * 64, "n": 4, "temperature": 1, "max_tokens": 1},
            {"prompt": ["a"] * 64, "n": 5, "temperature": 1},
            "n",
        ),
        ({"logprobs": 20}, {"logprobs": 21}, "logprobs"),
        ({"prompt_logprobs": 20}, {"prompt_logprobs": 21}, "prompt_logprobs"),
        ({"stop": [f"stop{i}" for i in range(16)]}, {"stop": [f"stop{i}" for i in range(17)]}, "stop"),
        ({"stop": ["x" * 256]}, {"stop": ["x" * 257]}, "stop[0]"),
        ({"logit_bias": {str(i): 1 for i in range(320)}}, {"logit_bias": {"320": 1}}, "logit_bias"),
        ({"cache_salt": "x" * 128}, {"cache_salt": "x" * 129}, "cache_salt"),
        ({"request_id": "x" * 128}, {"request_id": "x" * 129}, "request_id"),
        ({"stop_token_ids": [319]}, {"stop_token_ids": [320]}, "stop_token_ids"),
        ({"truncate_prompt_tokens": 256}, {"truncate_prompt_tokens": 257}, "truncate_prompt_tokens"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_limit_holds_at_itself_and_not_beyond(server, at_limit, beyond, param):
    complete(server, **at_limit)
    answer = server.completion(**beyond)
    assert (answer.status, answer.error["param"]) == (400, param)


@pytest.mark.parametrize("fields", [{"model": "tiny"}, {"model": "other"}, {"model": None}])
def test_each_served_name_is_answered_under_itself(server, fields):
    assert complete(server, **fields)["model"] == (fields["model"] or "tiny")


def test_another_model_does_not_exist(server):
    answer = server.completion(model="gpt-9")
    assert (answer.status, answer.error["code"], answer.error["param"]) == (404, "model_not_found", "model")
    assert answer.error["message"] == "The model `gpt-9` does not exist; GET /v1/models lists what is served."


def test_the_request_id_is_the_clients(server):
    assert server.post(ROUTE, {"prompt": "a"}, {"x-request-id": "mine.1"}).json["id"] == "cmpl-mine.1"
    assert complete(server, request_id="yours")["id"] == "cmpl-yours"
