from types import SimpleNamespace

from octavo.proto.sampling import SamplingParams
from octavo.server.requests import MAX_PARAMS_CHARS, note_request


def logged(prompt, sampling):
    lines = []
    service = SimpleNamespace(
        tracer=None,
        config=SimpleNamespace(enable_log_requests=True, max_log_len=8),
        log_prompt=lambda *line: lines.append(line),
    )
    request = SimpleNamespace(request_id="r", prompt=SimpleNamespace(text=prompt, token_ids=[1, 2]), sampling=sampling)
    exchange = SimpleNamespace(notes={})
    note_request(exchange, service, [request])
    assert exchange.notes == {"num_prompt_tokens": 2}
    return lines


def test_prompts_and_parameters_in_the_log_are_escaped_and_cut():
    [(request_id, prompt, params)] = logged(
        "one\ntwo and three", SamplingParams(stop=["\x1b[0m"], structured_outputs={"regex": "x" * 9000})
    )
    assert (request_id, prompt) == ("r", r"one\ntwo ... (17 characters)")
    assert "\x1b" not in params
    assert MAX_PARAMS_CHARS <= len(params) < MAX_PARAMS_CHARS + 40


def test_short_parameters_are_logged_as_they_are():
    [(_, _, params)] = logged("p", SamplingParams(temperature=0.5))
    assert "temperature=0.5" in params
    assert "characters)" not in params
