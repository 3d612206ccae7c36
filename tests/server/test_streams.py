"""The chunks of a stream, joined, are the answer that is not streamed: for every combination of what can be asked."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "tell me, é, about ☃"}]
CHOICES = {
    "n": [1, 2],
    "logprobs": [False, True],
    "stop": [False, True],
    "token_ids": [False, True],
    "interval": [1, 5],
    "echo": [False, True],
}
COMBINATIONS = [dict(zip(CHOICES, values, strict=True)) for values in itertools.product(*CHOICES.values())]


def body_of(route, n, logprobs, stop, token_ids, echo):
    fields = {"max_tokens": 14, "ignore_eos": True, "n": n, "echo": echo, "return_token_ids": token_ids}
    fields |= {"temperature": 1.2, "seed": 11} if n > 1 else {"temperature": 0}
    if stop:
        fields["stop"] = ["e", "q", "\n"]
    if route == COMPLETIONS:
        return fields | {"prompt": ["tell me", "é ☃"], **({"logprobs": 2} if logprobs else {})}
    if echo:
        fields |= {"continue_final_message": True, "add_generation_prompt": False}
    return fields | {"messages": MESSAGES, **({"logprobs": True, "top_logprobs": 2} if logprobs else {})}


def join(events):
    """The choices that a stream's chunks make, as the answer without streaming has them."""
    joined = {}
    for choice in (choice for event in events for choice in event["choices"]):
        whole = joined.setdefault(choice["index"], {"text": "", "logprobs": None, "token_ids": []})
        delta = choice.get("delta", choice)
        whole["text"] += delta.get("text") or delta.get("content") or ""
        whole["token_ids"] += choice.get("token_ids", [])
        if choice["logprobs"] is not None:
            merged = whole["logprobs"] or {}
            whole["logprobs"] = {name: merged.get(name, []) + part for name, part in choice["logprobs"].items()}
        if choice["finish_reason"] is not None:
            assert "finish_reason" not in whole
            whole |= {"finish_reason": choice["finish_reason"], "stop_reason": choice["stop_reason"]}
    return [joined[index] for index in sorted(joined)]


def plain(answer):
    return [
        {
            "text": choice["message"]["content"] if "message" in choice else choice["text"],
            "logprobs": choice["logprobs"],
            "token_ids": choice["token_ids"] or [],
            "finish_reason": choice["finish_reason"],
            "stop_reason": choice["stop_reason"],
        }
        for choice in answer["choices"]
    ]


@pytest.mark.parametrize("route", [COMPLETIONS, CHAT])
@pytest.mark.parametrize("chosen", COMBINATIONS, ids=lambda chosen: "-".join(f"{k}={v}" for k, v in chosen.items()))
def test_a_stream_joined_is_the_whole_answer(server, route, chosen):
    fields = {name: value for name, value in chosen.items() if name != "interval"}
    body = body_of(route, **fields)
    whole = server.post(route, body).json
    options = {"stream": True, "stream_interval": chosen["interval"], "stream_options": {"include_usage": True}}
    events = server.post(route, body | options).events
    assert events.pop() == "[DONE]"
    last = events.pop()
    assert last["choices"] == []
    for usage in (last["usage"], whole["usage"]):
        del usage["prompt_tokens_details"]
    assert last["usage"] == whole["usage"]
    assert {event["id"] for event in events} == {last["id"]}
    assert join(events) == plain(whole)


def test_a_chat_stream_opens_with_the_role_and_ends_with_the_reason(server):
    body = body_of(CHAT, n=1, logprobs=False, stop=False, token_ids=False, echo=False) | {"stream": True}
    *events, done = server.post(CHAT, body).events
    assert done == "[DONE]"
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all("role" not in event["choices"][0]["delta"] for event in events[1:])
    assert events[-1]["choices"][0]["finish_reason"] == "length"
    assert [("system_fingerprint" in event) for event in events] == [False] * (len(events) - 1) + [True]
    assert all(event["object"] == "chat.completion.chunk" for event in events)
    assert all("usage" not in event for event in events)


def test_usage_may_be_in_every_chunk(server):
    options = {"include_usage": True, "continuous_usage_stats": True}
    body = body_of(COMPLETIONS, n=1, logprobs=False, stop=False, token_ids=False, echo=False)
    *events, _ = server.post(COMPLETIONS, body | {"stream": True, "stream_options": options}).events
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == 28


def test_prompt_ids_come_with_the_first_chunk_of_each_choice(server):
    body = body_of(COMPLETIONS, n=1, logprobs=False, stop=False, token_ids=True, echo=False) | {"stream": True}
    *events, _ = server.post(COMPLETIONS, body).events
    seen = set()
    for choice in (event["choices"][0] for event in events):
        assert ("prompt_token_ids" in choice) == (choice["index"] not in seen)
        seen.add(choice["index"])


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 1, "seed": 5}])
def test_sixteen_at_once_get_the_texts_that_they_get_alone(server, sampling):
    bodies = [{"prompt": f"number {i}", "max_tokens": 20, "ignore_eos": True, **sampling} for i in range(16)]
    alone = [server.post(COMPLETIONS, body).text for body in bodies]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda body: server.post(COMPLETIONS, body | {"stream": True}).text, bodies))
    assert together == alone
    assert len(set(alone)) > 8
