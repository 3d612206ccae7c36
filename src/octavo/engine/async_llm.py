"""AsyncLLM: one engine for an asyncio program. Prompts in, streams of outputs out.

Signatures first; the body follows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.engine.args import EngineArgs
from octavo.engine.inputs import PreparedRequest
from octavo.engine.prompts import ChatMessage, ChatOptions, PromptType
from octavo.fault.state import EngineState
from octavo.loading import Tokenizer
from octavo.outputs import RequestOutput
from octavo.proto.sampling import SamplingParams
from octavo.proto.stats import EngineStats


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncOptions:
    """How an AsyncLLM runs its engine and bounds its own work."""

    in_process: bool = False
    """The engine in a thread of this process: no isolation, no restart."""
    replay: bool = True
    """Streams survive their engine; False: they end with an error when it dies."""
    stall_timeout_s: float = 60.0
    """Work waits and no step has finished for so long: the engine is killed and restarted."""
    prepare_timeout_s: float = 10.0
    """A template and tokenizing may take so long, the wait for a thread included."""
    max_prepare_queue: int = 256
    """Prompts that may wait for a thread."""
    trust_request_chat_template: bool = False
    """Accept ChatOptions.chat_template; such a template is code of the caller's."""
    client_idx: int = 0


class AsyncLLM:
    """One engine. All methods on one event loop."""

    def __init__(self, config: EngineConfig, options: AsyncOptions | None = None) -> None: ...

    @classmethod
    async def start(cls, config: EngineConfig, options: AsyncOptions | None = None) -> Self:
        """A running engine. Raises ConfigError, LoadError, EngineDeadError with the cause."""
        raise NotImplementedError

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, options: AsyncOptions | None = None) -> Self:
        """An engine that starts with the first call that needs it."""
        raise NotImplementedError

    async def prepare(
        self,
        prompt: PromptType,
        sampling_params: SamplingParams | None = None,
        *,
        request_id: str,
        priority: int = 0,
        deadline_s: float | None = None,
        is_strict: bool = False,
        add_special_tokens: bool = True,
    ) -> PreparedRequest:
        """Tokenize and check, off the event loop. deadline_s: seconds from now.

        Raises ValidationError; OverloadedError when too many prompts wait or the time was up; EngineDeadError.
        """
        raise NotImplementedError

    async def prepare_chat(
        self,
        messages: Sequence[ChatMessage],
        sampling_params: SamplingParams | None = None,
        *,
        request_id: str,
        chat: ChatOptions | None = None,
        cache_salt: str | None = None,
        priority: int = 0,
        deadline_s: float | None = None,
        is_strict: bool = False,
        add_special_tokens: bool = False,
    ) -> PreparedRequest:
        """The same for a conversation."""
        raise NotImplementedError

    async def tokenize(self, prompt: PromptType, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of any form of prompt, within the same bounds as `prepare`."""
        raise NotImplementedError

    async def tokenize_chat(
        self, messages: Sequence[ChatMessage], chat: ChatOptions | None = None, *, add_special_tokens: bool = False
    ) -> list[int]:
        raise NotImplementedError

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        raise NotImplementedError

    def generate(
        self,
        prompt: PromptType | PreparedRequest,
        sampling_params: SamplingParams | None = None,
        request_id: str | None = None,
        *,
        priority: int = 0,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[RequestOutput, None]:
        """Outputs as they come; the last has finished=True. Closing the iterator or cancelling its task aborts.

        A slow consumer gets fewer, larger outputs: nothing queues up.
        Raises ValidationError, CapacityError, OverloadedError, EngineDeadError. A request that fails later ends with
        an output of finish_reason "error" and `error` set.
        """
        raise NotImplementedError

    async def abort(self, request_ids: str | Iterable[str]) -> None:
        """End requests; their streams end with finish_reason "abort"."""
        raise NotImplementedError

    async def stats(self, timeout_s: float = 1.0) -> EngineStats:
        """The engine's counters now. Raises EngineDeadError when it does not answer in time."""
        raise NotImplementedError

    async def check_health(self, timeout_s: float = 1.0) -> None:
        """A live round trip. Raises EngineDeadError when the engine is not healthy or does not answer in time."""
        raise NotImplementedError

    async def reset_prefix_cache(self, *, reset_running: bool = False) -> bool:
        raise NotImplementedError

    async def drain(self, timeout_s: float) -> bool:
        """Take nothing new and wait for what runs. False: time was up and the rest was aborted."""
        raise NotImplementedError

    async def shutdown(self, timeout_s: float = 10.0) -> None:
        """End the engine and everything of it. Idempotent."""
        raise NotImplementedError

    @property
    def state(self) -> EngineState:
        raise NotImplementedError

    @property
    def dead_error(self) -> str | None:
        """Why the engine is DEAD, or why it last died."""
        raise NotImplementedError

    @property
    def num_live_requests(self) -> int:
        """Requests that have not ended; those in `prepare` included."""
        raise NotImplementedError

    @property
    def num_queued_requests(self) -> int:
        """Requests of which the engine has reported nothing yet; those in `prepare` included."""
        raise NotImplementedError

    @property
    def num_queued_tokens(self) -> int:
        """Prompt tokens of the queued requests (an estimate for those in `prepare`)."""
        raise NotImplementedError

    @property
    def num_restarts(self) -> int:
        raise NotImplementedError

    @property
    def config(self) -> ResolvedConfig:
        raise NotImplementedError

    @property
    def tokenizer(self) -> Tokenizer | None:
        raise NotImplementedError

    @property
    def default_sampling_params(self) -> SamplingParams:
        raise NotImplementedError

    @property
    def max_model_len(self) -> int:
        raise NotImplementedError

    @property
    def model_names(self) -> tuple[str, ...]:
        raise NotImplementedError
