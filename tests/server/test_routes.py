import pytest
from fakes.live_server import LiveServer

from octavo import __version__
from octavo.server.auth import OPEN_PATHS

KEY = "the-key"


@pytest.fixture(scope="module")
def guarded(tiny_folder, tmp_path_factory):
    """A server with a key, another one for its admin routes, CORS for one origin, small bounds, ids in headers."""
    folder = tmp_path_factory.mktemp("guarded")
    options = (
        "--kernel-backend=reference",
        "--max-model-len=128",
        "--num-gpu-blocks-override=64",
        "--served-model-name=tiny",
        f"--api-key={KEY}",
        "--allowed-origins=https://good.example",
        "--max-body-bytes=2048",
        "--max-json-depth=8",
        "--max-json-keys=64",
        "--max-messages=3",
        "--enable-request-id-headers",
        "--root-path=/api",
        f"--admin-uds={folder / 'admin.sock'}",
    )
    with LiveServer(tiny_folder, options, {}, folder) as running:
        yield running


def authorized(key=KEY):
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("path", ["/health", "/ping", "/livez", "/readyz"])
def test_probes_answer_200_with_nothing(server, path):
    answer = server.get(path)
    assert (answer.status, answer.body) == (200, b"")


def test_ping_may_be_posted(server):
    assert server.post("/ping", {}).status == 200


def test_the_version_is_octavos(server):
    assert server.get("/version").json == {"version": __version__}


def test_models_carry_what_tools_read(server):
    first, second = server.get("/v1/models").json["data"]
    assert [first["id"], second["id"]] == ["tiny", "other"]
    assert (first["max_model_len"], first["object"], first["parent"]) == (256, "model", None)
    assert "/" not in first["root"]
    assert server.get("/v1/models/other").json["id"] == "other"
    assert server.get("/v1/models/other%2Fnone").error["code"] == "model_not_found"


def test_tokens_make_the_round_trip(server):
    answer = server.post("/tokenize", {"prompt": "héllo", "return_token_strs": True}).json
    assert answer["count"] == len(answer["tokens"]) == len(answer["token_strs"])
    assert answer["max_model_len"] == 256
    assert server.post("/detokenize", {"tokens": answer["tokens"][1:]}).json == {"prompt": "héllo"}


def test_a_token_that_does_not_exist_is_no_text(server):
    answer = server.post("/detokenize", {"tokens": [5, 320]})
    assert (answer.status, answer.error["param"]) == (400, "tokens")


def test_load_counts_requests_for_text(server):
    assert server.get("/load").json == {"server_load": 0}


def test_the_description_names_every_route_and_its_fields(server):
    description = server.get("/openapi.json").json
    assert "/v1/chat/completions" in description["paths"]
    fields = description["components"]["schemas"]["CompletionRequest"]["properties"]
    assert {"prompt", "temperature", "logit_bias", "cache_salt"} <= set(fields)
    page = server.get("/docs").body.decode()
    assert all(path in page for path in description["paths"])


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1/completions/", "//v1/completions", "/V1/completions", "/v1/%63ompletions", "/metrics/x"]
)
def test_what_is_not_in_the_table_does_not_exist(server, path):
    answer = server.get(path)
    assert (answer.status, answer.error["code"]) == (404, "not_found")


def test_another_method_is_not_allowed(server):
    answer = server.get("/v1/completions")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-encoding": "gzip"}, 415),
        ({"content-encoding": "identity"}, 200),
    ],
)
def test_only_plain_json_is_read(server, headers, status):
    assert server.post("/v1/completions", {"prompt": "a", "max_tokens": 1}, headers).status == status


@pytest.mark.parametrize("path", ["/reset_prefix_cache", "/server_info", "/sleep", "/collective_rpc"])
def test_admin_routes_are_not_on_the_public_port(guarded, path):
    assert guarded.post(path, {}, authorized()).status == 404


def test_every_route_but_the_open_ones_needs_the_key(guarded):
    paths = guarded.get("/openapi.json", authorized()).json["paths"]
    for path in [*paths, "/nowhere", "//v1/models", "/v1/%6dodels"]:
        status = guarded.get(path).status
        assert (status == 200) if path in OPEN_PATHS else (status == 401), path


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", f"bearer {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", f"Basic {KEY}", KEY]
)
def test_only_the_whole_key_opens(guarded, value):
    answer = guarded.get("/v1/models", {"authorization": value})
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
    assert guarded.get("/v1/models", authorized()).status == 200


def test_a_proxys_prefix_may_stay_on(guarded):
    assert guarded.get("/api/v1/models", authorized()).status == 200
    assert guarded.get("/api/v1/models").status == 401
    assert guarded.get("/apiv1/models", authorized()).status == 404


def test_request_ids_are_sent_back_when_asked_for(guarded):
    headers = authorized() | {"x-request-id": "abc"}
    assert guarded.get("/v1/models", headers).headers["x-request-id"] == "abc"


def test_bodies_are_bounded_in_bytes(guarded):
    for size, status in ((2048, 200), (2049, 413)):
        start = b'{"prompt":"a","max_tokens":1,"user":"'
        body = start + b"x" * (size - len(start) - 2) + b'"}'
        answer = guarded.post("/v1/completions", body, authorized())
        assert answer.status == status
    assert answer.error["code"] == "content_too_large"


def nested(depth):
    return b'{"prompt":"a","max_tokens":1,"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def keyed(count):
    return b'{"prompt":"a","max_tokens":1,"x":[' + b",".join([b"[]"] * (count - 5)) + b"]}"


@pytest.mark.parametrize(("make", "limit"), [(nested, 8), (keyed, 64)])
def test_json_is_bounded_in_depth_and_keys(guarded, make, limit):
    assert guarded.post("/v1/completions", make(limit), authorized()).status == 200
    answer = guarded.post("/v1/completions", make(limit + 1), authorized())
    assert (answer.status, answer.error["code"]) == (400, "invalid_json")


def test_messages_are_bounded_in_number(guarded):
    message = {"role": "user", "content": "a"}
    for count, status in ((3, 200), (4, 400)):
        body = {"messages": [message] * count, "max_tokens": 1}
        assert guarded.post("/v1/chat/completions", body, authorized()).status == status


def test_browsers_of_an_allowed_origin_may_call(guarded):
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    answer = guarded.ask("OPTIONS", "/v1/models", None, {"origin": "https://good.example", **asked})
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "https://good.example"
    assert answer.headers["access-control-allow-headers"] == "authorization"
    assert "access-control-allow-origin" in guarded.get("/v1/models", {"origin": "https://good.example"}).headers
    answer = guarded.ask("OPTIONS", "/v1/models", None, {"origin": "https://evil.example", **asked})
    assert answer.status == 401
    assert "access-control-allow-origin" not in answer.headers


def test_no_origin_is_allowed_unless_told(server):
    assert "access-control-allow-origin" not in server.get("/version", {"origin": "https://a.example"}).headers


def test_the_log_holds_neither_keys_nor_prompts(guarded):
    guarded.post("/v1/completions", {"prompt": "very private words", "max_tokens": 1}, authorized())
    assert "route=" in guarded.log
    assert KEY not in guarded.log
    assert "private" not in guarded.log
