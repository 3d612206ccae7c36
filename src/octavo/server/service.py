"""What endpoints work with: the engine, and the server's own settings made ready.

Owns: names and limits that every endpoint needs, counts for /load.   Does not own: any endpoint.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from octavo import __version__
from octavo.base.log import get_logger
from octavo.config.answer_options import AnswerConfig
from octavo.config.server_options import ServerConfig
from octavo.engine.front.async_llm import AsyncLLM
from octavo.loading import Tokenizer
from octavo.obs.server_load import ServerLoad
from octavo.obs.tracing import RequestTracer
from octavo.server.admission import Admission
from octavo.server.api.logprobs import TokenNames
from octavo.server.api.params import SamplingLimits
from octavo.server.body import BodyLimits
from octavo.server.errors import ApiError
from octavo.server.tools import ToolLimits
from octavo.server.turn_formats import OutputFormats
from octavo.server.turn_reasoning import ReasoningNames

logger = get_logger(__name__)


class Service:
    """Made once the engine is ready."""

    def __init__(
        self,
        engine: AsyncLLM,
        config: ServerConfig,
        answers: AnswerConfig,
        load: ServerLoad,
        tracer: RequestTracer | None = None,
    ) -> None:
        self.engine = engine
        self.tracer = tracer
        self.config = config
        self.created_s = int(time.time())
        self.admission = Admission(engine, load, config.max_num_queued_reqs, config.max_num_queued_tokens)
        self.body_limits = body_limits_of(config)
        options = engine.config.options
        self.sampling_limits = SamplingLimits(
            max_n=config.max_n,
            max_request_sequences=config.max_request_sequences,
            max_logprobs=options.model.max_logprobs,
            has_priorities=options.scheduler.scheduling_policy == "priority",
        )
        self.tool_limits = ToolLimits(
            max_tools=answers.max_tools,
            max_bytes=answers.max_tool_bytes,
            excludes_unused=config.exclude_tools_when_tool_choice_none,
        )
        self.chat_templates = engine.model.chat_templates
        """(for conversations, for those with tools)."""
        self.formats = OutputFormats.choose(answers, *self.chat_templates)
        self.constrains_reasoning = answers.structured_outputs_config.get("enable_in_reasoning") is True
        self.reasoning_names = ReasoningNames.of(answers.reasoning_field)
        self.model_names = engine.config.model.served_model_names
        self.fingerprint = _fingerprint(engine)
        self.control_texts = () if config.trust_special_tokens else _control_texts(engine.model.tokenizer)
        """What messages may not spell."""
        self.load = load

    @property
    def deadline_s(self) -> float | None:
        """Seconds that a request may take in all."""
        return self.config.request_timeout_s or None

    def now_s(self) -> int:
        """Unix time, for `created`."""
        return int(time.time())

    def log_prompt(self, request_id: str, prompt: str, sampling: str) -> None:
        """For --enable-log-requests; `prompt` is escaped and cut."""
        logger.info("Received request %s: prompt: '%s', params: %s", request_id, prompt, sampling)

    def choose_model(self, name: str | None) -> str:
        """The name to answer with. Raises ApiError 404 for a model that is not served."""
        if name is not None and name not in self.model_names:
            shown = name if len(name) <= 100 else name[:100] + "..."
            message = f"The model `{shown}` does not exist; GET /v1/models lists what is served."
            raise ApiError(404, "model_not_found", message, param="model")
        return name or self.model_names[0]

    def token_names(self, as_ids: bool | None) -> TokenNames:
        """How tokens of logprobs are called in one request's answers."""
        chosen = self.config.return_tokens_as_token_ids if as_ids is None else as_ids
        return TokenNames(self.engine.model.tokenizer, chosen)

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        """What is inside counts for /load."""
        self.load.change_active(1)
        try:
            yield
        finally:
            self.load.change_active(-1)


def body_limits_of(config: ServerConfig) -> BodyLimits:
    """As the options say."""
    return BodyLimits(max_bytes=config.max_body_bytes, max_depth=config.max_json_depth, max_keys=config.max_json_keys)


def _control_texts(tokenizer: Tokenizer | None) -> tuple[str, ...]:
    return () if tokenizer is None else tuple(tokenizer.token_text(idx) for idx in tokenizer.all_special_ids)


def _fingerprint(engine: AsyncLLM) -> str:
    """Changes when answers may: version, model and what rounds its numbers."""
    config = engine.config
    parts = (
        config.options.model.model,
        config.model.dtype,
        config.kernels.kernel_backend,
        config.kernels.cpu_isa,
        config.cache.spec.block_size,
    )
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
    return f"octavo-{__version__}-{digest}"
