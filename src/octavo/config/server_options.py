"""Options of `octavo serve`: where it listens, whom it lets in, how much it takes, what it logs.

Owns: names, defaults, ranges and one-line docs of the group `server`.   Does not own: the engine's options (schema.py).
Names are vLLM's where vLLM has the option; every limit of the HTTP surface is one of these.
"""

# ruff: noqa: RUF009 - option() returns a dataclass field, not a value shared by instances

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from octavo.config.option import option

HttpLogLevel = Literal["critical", "error", "warning", "info", "debug", "trace"]
QUIET_PATHS = ("/health", "/livez", "/readyz", "/ping", "/metrics", "/load")

_OURS = "Ours: vLLM has no such limit."


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The HTTP server."""

    # ---- where it listens -------------------------------------------------------------------------------------------
    host: str = option(
        "127.0.0.1",
        "Address to listen on; 0.0.0.0 is every interface.",
        kind="text",
        common=True,
        differs="Loopback by default; vLLM listens on every interface without a key.",
    )
    port: int = option(8000, "Port to listen on; 0: any free one.", kind="count", minimum=0, maximum=65535, common=True)
    uds: str | None = option(None, "Listen on this unix socket in place of host and port.", kind="text")
    ssl_keyfile: str | None = option(None, "Private key for HTTPS, a PEM file.", kind="text")
    ssl_certfile: str | None = option(None, "Certificate for HTTPS, a PEM file with its chain.", kind="text")
    root_path: str | None = option(
        None, "Path that a proxy in front of the server puts before every route.", kind="text"
    )
    admin_port: int | None = option(
        None,
        "Loopback port of the admin routes (cache reset, server info); needs --admin-api-key.",
        kind="count",
        minimum=0,
        maximum=65535,
        differs="Ours: admin routes are never on the public port; vLLM opens them there with VLLM_SERVER_DEV_MODE.",
    )
    admin_uds: str | None = option(None, "Unix socket of the admin routes, for this user only.", kind="text")
    admin_api_key: str | None = option(None, "Key for the admin routes.", kind="text", secret=True)
    api_server_count: int = option(
        1,
        "Processes that serve HTTP.",
        kind="count",
        minimum=1,
        maximum=64,
        differs="1 by default: one front end keeps up with an engine on CPU.",
    )

    # ---- who is let in ----------------------------------------------------------------------------------------------
    api_key: tuple[str, ...] = option(
        (),
        "Keys of which clients must send one as `Authorization: Bearer KEY`.",
        kind="names",
        secret=True,
        common=True,
        differs="Guards every route but health, version and metrics; vLLM guards /v1 and leaves e.g. /tokenize open.",
    )
    allowed_origins: tuple[str, ...] = option((), "Origins that browsers may call from; * is any.", kind="names")
    allowed_methods: tuple[str, ...] = option(("*",), "Methods that browsers may use.", kind="names")
    allowed_headers: tuple[str, ...] = option(("*",), "Headers that browsers may send.", kind="names")
    allow_credentials: bool = option(False, "Let browsers send credentials.", kind="switch")

    # ---- limits of HTTP ---------------------------------------------------------------------------------------------
    max_connections: int = option(2048, "Connections open at once.", kind="count", minimum=1, differs=_OURS)
    max_header_bytes: int = option(
        16384,
        "Request line and headers together.",
        kind="size",
        unit="bytes",
        minimum=1024,
        differs="In place of --h11-max-incomplete-event-size (4 MiB): 16 KiB is what other servers take.",
    )
    max_header_count: int = option(
        100, "Headers of a request.", kind="count", minimum=8, differs="In place of --h11-max-header-count (256)."
    )
    max_body_bytes: int = option(16 << 20, "Body of a request.", kind="size", unit="bytes", minimum=1024, differs=_OURS)
    max_body_chunks: int = option(65536, "Chunks of a request's body.", kind="count", minimum=1, differs=_OURS)
    read_timeout_s: float = option(
        10.0,
        "Time for a request to arrive; a body gets one second more per MiB.",
        kind="fraction",
        unit="seconds",
        minimum=0.01,
        differs=_OURS,
    )
    keep_alive_timeout_s: float = option(
        5.0,
        "Time an idle connection stays open.",
        kind="fraction",
        unit="seconds",
        minimum=0.01,
        differs="In place of VLLM_HTTP_TIMEOUT_KEEP_ALIVE: nothing is set by environment alone.",
    )
    write_timeout_s: float = option(
        60.0,
        "Time a client may take no bytes before its request is aborted.",
        kind="fraction",
        unit="seconds",
        minimum=0.01,
        differs=_OURS,
    )

    # ---- limits of requests -----------------------------------------------------------------------------------------
    max_json_depth: int = option(64, "Nesting of a JSON body.", kind="count", minimum=8, maximum=500, differs=_OURS)
    max_json_keys: int = option(100_000, "Keys and containers of a JSON body.", kind="count", minimum=64, differs=_OURS)
    max_prompts: int = option(
        64,
        "Prompts of one completion request.",
        kind="count",
        unit="prompts",
        minimum=1,
        differs="In place of VLLM_MAX_COMPLETION_PROMPTS (1024).",
    )
    max_n: int = option(128, "Largest n.", kind="count", minimum=1, differs="In place of VLLM_MAX_N_SEQUENCES (16384).")
    max_request_sequences: int = option(
        256, "Sequences of one request: prompts times n.", kind="count", minimum=1, differs=_OURS
    )
    max_messages: int = option(4096, "Messages of a conversation.", kind="count", minimum=1, differs=_OURS)
    max_num_queued_reqs: int = option(
        1024,
        "Requests that may wait for the engine; beyond that clients get 503 and Retry-After.",
        kind="count",
        unit="requests",
        minimum=1,
        common=True,
        differs="Finite; vLLM's queue has no bound by default.",
    )
    max_num_queued_tokens: int = option(
        4_000_000,
        "Prompt tokens that may wait for the engine (estimated before tokenizing).",
        kind="count",
        unit="tokens",
        minimum=1,
        differs="Finite; vLLM's queue has no bound by default.",
    )
    request_timeout_s: float = option(
        3600.0,
        "Time from a request's arrival to its last token; 0: no limit.",
        kind="fraction",
        unit="seconds",
        minimum=0,
        differs=_OURS,
    )

    # ---- life -------------------------------------------------------------------------------------------------------
    shutdown_timeout: float = option(
        30.0,
        "Time that running requests get after SIGTERM; what is left then is aborted.",
        kind="fraction",
        unit="seconds",
        minimum=0,
        common=True,
        differs="30 seconds; vLLM aborts at once (0).",
    )
    replay: bool = option(
        True,
        "Streams survive the death of the engine: it is restarted and the text goes on.",
        kind="switch",
        differs="Ours; --no-replay ends them with an error.",
    )
    stall_timeout_s: float = option(
        60.0,
        "Time without a finished step while work waits; then the engine is restarted.",
        kind="fraction",
        unit="seconds",
        minimum=0.1,
        differs="In place of VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS (300).",
    )
    in_process: bool = option(
        False,
        "Run the engine in the server's process: no restart after a crash.",
        kind="switch",
        differs="In place of VLLM_ENABLE_V1_MULTIPROCESSING=0.",
    )

    # ---- what requests and answers hold -----------------------------------------------------------------------------
    response_role: str = option("assistant", "Role of the messages that are answered.", kind="text")
    default_chat_template_kwargs: Mapping[str, object] = option(
        {}, 'Variables for the chat template, as JSON: {"enable_thinking": false}; requests win.', kind="json"
    )
    trust_request_chat_template: bool = option(
        False, "Accept `chat_template` in requests: a template is code.", kind="switch"
    )
    trust_special_tokens: bool = option(
        False,
        "Let the text of messages spell the model's control tokens, such as the end of a turn.",
        kind="switch",
        differs="Off: such text is read as text; in vLLM any user can end a turn and begin one as the system.",
    )
    exclude_tools_when_tool_choice_none: bool = option(
        False, "Leave tools out of the prompt when a request says tool_choice none.", kind="switch"
    )
    enable_prompt_tokens_details: bool = option(
        True, "Report cached prompt tokens in usage.", kind="switch", differs="On; off in vLLM."
    )
    enable_force_include_usage: bool = option(False, "Report usage in every chunk of every stream.", kind="switch")
    return_tokens_as_token_ids: bool = option(
        False, "Name tokens of logprobs by id, as token_id:42, in every answer.", kind="switch"
    )
    enable_request_id_headers: bool = option(False, "Send X-Request-Id with every answer.", kind="switch")
    stream_interval: int = option(
        1, "Tokens per chunk of a stream.", kind="count", unit="tokens", minimum=1, maximum=1 << 20
    )
    sse_keep_alive_interval: float = option(
        0.0, "Send a comment in streams that are silent for so long; 0: never.", kind="fraction", unit="seconds",
        minimum=0,
    )  # fmt: skip
    disable_fastapi_docs: bool = option(False, "No /docs and /openapi.json.", kind="switch")
    enable_server_load_tracking: bool = option(
        False, "Count requests for /load.", kind="switch", differs="Without effect: they are always counted."
    )

    # ---- what it logs -----------------------------------------------------------------------------------------------
    uvicorn_log_level: HttpLogLevel = option(
        "info",
        "Least important lines of the HTTP server that are logged.",
        kind="choice",
        choices=("critical", "error", "warning", "info", "debug", "trace"),
        differs="vLLM's name, so that scripts go on working; the server is our own.",
    )
    disable_uvicorn_access_log: bool = option(False, "Do not log a line per request.", kind="switch")
    disable_access_log_for_endpoints: tuple[str, ...] = option(
        QUIET_PATHS,
        "Paths whose requests are not logged.",
        kind="names",
        differs="Health and metrics are left out by default.",
    )
    enable_log_requests: bool = option(
        False, "Log prompts and parameters of each request, escaped and cut.", kind="switch"
    )
    max_log_len: int = option(256, "Characters of a prompt in the log.", kind="count", minimum=0)
