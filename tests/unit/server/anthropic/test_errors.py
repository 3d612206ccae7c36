import json

import pytest

from octavo.server.admission import QueueFullError
from octavo.server.anthropic.errors import write_error
from octavo.server.anthropic.route import is_anthropic
from octavo.server.errors import ApiError


def written(error):
    status, body = write_error(error, "r1")
    read = json.loads(body)
    assert (set(read), read["type"], read["request_id"]) == ({"type", "error", "request_id"}, "error", "r1")
    return status, read["error"]["type"], read["error"]["message"]


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ApiError(400, "invalid_value", "m"), 400, "invalid_request_error"),
        (ApiError(401, "invalid_api_key", "m"), 401, "authentication_error"),
        (ApiError(404, "model_not_found", "m"), 404, "not_found_error"),
        (ApiError(405, "method_not_allowed", "m"), 405, "invalid_request_error"),
        (ApiError(413, "content_too_large", "m"), 413, "request_too_large"),
        (ApiError(415, "unsupported_media_type", "m"), 415, "invalid_request_error"),
        (ApiError(429, "queue_full", "m"), 529, "overloaded_error"),
        (ApiError(500, "internal_error", "m"), 500, "api_error"),
        (ApiError(503, "unavailable", "m"), 503, "api_error"),
        (ApiError(504, "deadline_exceeded", "m"), 504, "timeout_error"),
    ],
)
def test_each_error_has_anthropics_kind(error, status, kind):
    assert written(error) == (status, kind, "m")


def test_a_full_queue_is_an_overload():
    status, kind, message = written(QueueFullError("max_num_queued_reqs", "too many"))
    assert (status, kind) == (529, "overloaded_error")
    assert "max_num_queued_reqs" in message


@pytest.mark.parametrize(
    ("of_chat", "here"),
    [
        ('tools[3].function.parameters at "/x": no', 'tools[3].input_schema at "/x": no'),
        ("tools[0].function.strict: no", "tools[0].strict: no"),
        ("tools[0]: no", "tools[0]: no"),
        ('response_format.json_schema.schema at "/x": no', 'output_config.format.schema at "/x": no'),
        ("response_format: no", "output_config.format: no"),
        ("thinking_token_budget: no", "thinking.budget_tokens: no"),
        ("stop[1]='': no", "stop_sequences[1]='': no"),
        ("stop: no", "stop_sequences: no"),
        ("stop_token_ids: no", "stop_token_ids: no"),
        ("stopped: no", "stopped: no"),
        ("temperature=9: no", "temperature=9: no"),
    ],
)
def test_fields_have_their_names_here(of_chat, here):
    assert written(ApiError(400, "invalid_value", of_chat))[2] == here


def test_a_prompt_that_is_too_long_is_said_in_words_that_agents_look_for():
    error = ApiError(400, "context_length_exceeded", "This model's maximum context length is 8 tokens.")
    assert written(error)[2].startswith("prompt is too long: This model's maximum context length is 8")


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("/v1/messages", True), ("/v1/messages/count_tokens", True), ("/v1/messages/x", True), ("/v1/messagesx", False),
     ("/v1/models", False), ("/v1/%6dessages", False)],
)  # fmt: skip
def test_the_form_belongs_to_a_part_of_the_paths(path, is_one):
    assert is_anthropic(path) is is_one
