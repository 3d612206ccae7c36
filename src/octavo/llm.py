"""LLM: the offline API. A model in this process, lists of prompts in, lists of outputs out.

Owns: the life of an engine, turning one call into many requests, order of the results.
Does not own: validation (engine/input/processor.py), the loop (engine/core.py), outputs (engine/output/processor.py).
Invariants: nothing runs before every prompt of a call has been checked; after a call, also one that raised, the engine
is idle and usable. One call at a time: a second one is refused, whatever thread it comes from.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, Self

from octavo.base.errors import EngineDeadError, ValidationError
from octavo.config.load import load_config
from octavo.config.resolved import ResolvedConfig
from octavo.config.schema import EngineConfig
from octavo.engine.args import EngineArgs
from octavo.engine.build import Engine, build_engine
from octavo.engine.input.processor import PreparedRequest
from octavo.engine.input.prompts import ChatMessage, ChatOptions, Prompt, PromptType, list_conversations, list_prompts
from octavo.engine.progress import GenerationProgress, ProgressBarFactory
from octavo.loading import Tokenizer
from octavo.outputs import RequestOutput
from octavo.proto.sampling import RequestOutputKind, SamplingParams

SamplingChoice = SamplingParams | Sequence[SamplingParams] | None
"""One for all prompts, one for each, or the model's defaults."""


class LLM:
    """A loaded model. Use as a context manager, or call `close`; it closes itself when it is forgotten.

    model: an alias, a folder, a .gguf file or a Hugging Face id. Every engine option is a keyword (docs/options.md).
    Raises ConfigError with all problems of the options, LoadError for a model that cannot be used.
    """

    def __init__(self, model: str, **engine_options: object) -> None:
        self._engine: Engine | None = None
        self._start(load_config({"model": model, **engine_options}, usage="offline"))

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs) -> Self:
        """The same from an options object."""
        return cls.from_config(engine_args.create_engine_config())

    @classmethod
    def from_config(cls, config: EngineConfig) -> Self:
        """The same from a checked configuration."""
        llm = cls.__new__(cls)
        llm._engine = None
        llm._start(config)
        return llm

    def _start(self, config: EngineConfig) -> None:
        self._engine = build_engine(config)
        self._num_requests = 0
        self._call_lock = threading.Lock()

    # ---- generating ---------------------------------------------------------------------------------------------

    def generate(
        self,
        prompts: PromptType | Sequence[PromptType],
        sampling_params: SamplingChoice = None,
        *,
        use_tqdm: bool | ProgressBarFactory = True,
        priority: Sequence[int] | None = None,
    ) -> list[RequestOutput]:
        """Continue each prompt; outputs come in the order of the prompts.

        prompts: a text, token ids, {"prompt": ...} or {"prompt_token_ids": ...}, or a sequence of these, mixed freely.
        sampling_params: one for all, or one for each; None: the model's defaults. priority: one number a prompt,
        small is important, with scheduling_policy="priority". use_tqdm: show a bar, or a factory such as tqdm.
        Raises ValidationError for any prompt that cannot run, before anything runs.
        """
        inputs = self._running.inputs
        return self._run([inputs.read(p) for p in list_prompts(prompts)], sampling_params, use_tqdm, priority)

    def chat(
        self,
        messages: Sequence[ChatMessage] | Sequence[Sequence[ChatMessage]],
        sampling_params: SamplingChoice = None,
        *,
        use_tqdm: bool | ProgressBarFactory = True,
        priority: Sequence[int] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> list[RequestOutput]:
        """Answer one conversation, or each of a sequence of them; see `generate`.

        chat_template: in place of the model's. continue_final_message: go on with the last message (then
        add_generation_prompt must be False). tools, chat_template_kwargs: passed to the template.
        """
        options = ChatOptions(
            chat_template=chat_template,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            tools=tools,
            template_kwargs=chat_template_kwargs,
        )
        inputs = self._running.inputs
        prompts = [inputs.render_chat(conversation, options) for conversation in list_conversations(messages)]
        return self._run(prompts, sampling_params, use_tqdm, priority)

    def _run(
        self,
        prompts: Sequence[Prompt],
        sampling_params: SamplingChoice,
        use_tqdm: bool | ProgressBarFactory,
        priority: Sequence[int] | None,
    ) -> list[RequestOutput]:
        with self._one_call():
            requests = self._prepare(prompts, self._params_for(len(prompts), sampling_params), priority)
            finished: dict[str, RequestOutput] = {}
            driven = closing(self._running.front_end.drive(requests))
            with GenerationProgress.start(use_tqdm, total=len(requests)) as progress, driven as outputs:
                for output in outputs:
                    finished[output.request_id] = output
                    progress.add(output)
            return [finished[request.request_id] for request in requests]

    @contextmanager
    def _one_call(self) -> Iterator[None]:
        """Refuse a call, of any thread, while one runs: they would take each other's outputs."""
        if not self._call_lock.acquire(blocking=False):
            raise ValidationError("this LLM is generating already: one call at a time; give it all prompts in one list")
        try:
            yield
        finally:
            self._call_lock.release()

    def _params_for(self, num_prompts: int, given: SamplingChoice) -> list[SamplingParams]:
        """One a prompt; only the end of each request is reported, so nothing is joined on the way."""
        if given is None or isinstance(given, SamplingParams):
            one = self.get_default_sampling_params() if given is None else given
            return [_final_only(one)] * num_prompts
        if not isinstance(given, Sequence) or not all(isinstance(params, SamplingParams) for params in given):
            raise ValidationError(
                "sampling_params: must be a SamplingParams, or a list with one for each prompt",
                parameter="sampling_params",
                value=given,
            )
        if len(given) != num_prompts:
            raise ValidationError(
                f"sampling_params has {len(given)} entries for {num_prompts} prompts: give one for all or one each",
                parameter="sampling_params",
                value=len(given),
            )
        return [_final_only(params) for params in given]

    def _prepare(
        self, prompts: Sequence[Prompt], params: Sequence[SamplingParams], priority: Sequence[int] | None
    ) -> list[PreparedRequest]:
        """Check everything. Raises ValidationError saying which prompt is wrong."""
        engine = self._running
        _check_priority(priority, len(prompts))
        arrival_s = engine.front_end.now_s()
        requests = []
        for index, (prompt, sampling) in enumerate(zip(prompts, params, strict=True)):
            try:
                request = engine.inputs.prepare(
                    prompt,
                    sampling,
                    request_id=str(self._num_requests + index),
                    arrival_s=arrival_s,
                    priority=priority[index] if priority else 0,
                )
            except ValidationError as error:
                if len(prompts) == 1:
                    raise
                raise ValidationError(
                    f"prompts[{index}]: {error}", parameter=error.parameter, value=error.value
                ) from None
            requests.append(request)
        self._num_requests += len(requests)
        return requests

    # ---- the rest -----------------------------------------------------------------------------------------------

    def get_tokenizer(self) -> Tokenizer:
        """The model's tokenizer. Raises ValidationError when there is none (skip_tokenizer_init)."""
        tokenizer = self._running.tokenizer
        if tokenizer is None:
            raise ValidationError("the engine was started with skip_tokenizer_init: it has no tokenizer")
        return tokenizer

    def get_default_sampling_params(self) -> SamplingParams:
        """What `generate` uses without sampling_params: the model's generation_config over the engine's defaults."""
        return self._running.inputs.default_sampling_params

    def reset_prefix_cache(self, *, reset_running_requests: bool = False) -> bool:
        """Forget all cached prefixes. False: some were in use and nothing was forgotten."""
        return self._running.front_end.client.reset_prefix_cache(reset_running=reset_running_requests)

    @property
    def config(self) -> ResolvedConfig:
        """What the engine runs with, every `auto` replaced."""
        return self._running.config

    @property
    def startup_timeline(self) -> dict[str, float]:
        """Phase of the start-up -> seconds, in order; they sum to the time the construction took."""
        return self._running.timeline.phases

    @property
    def engine(self) -> Engine:
        """The parts, for benchmarks and tools that drive the engine step by step."""
        return self._running

    @property
    def _running(self) -> Engine:
        if self._engine is None:
            raise EngineDeadError("this LLM was closed")
        return self._engine

    def close(self) -> None:
        """Release the model's memory and threads. Calling again does nothing."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.front_end.client.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None:
            self.close()


def _check_priority(priority: Sequence[int] | None, num_prompts: int) -> None:
    if priority is None:
        return
    if not isinstance(priority, Sequence) or not all(type(one) is int for one in priority):
        raise ValidationError(
            "priority: must be a list of whole numbers, one for each prompt", parameter="priority", value=priority
        )
    if len(priority) != num_prompts:
        raise ValidationError(
            f"priority has {len(priority)} entries for {num_prompts} prompts: give one each, or leave priority out",
            parameter="priority",
            value=len(priority),
        )


def _final_only(params: SamplingParams) -> SamplingParams:
    if params.output_kind is RequestOutputKind.FINAL_ONLY:
        return params
    return params.clone(output_kind=RequestOutputKind.FINAL_ONLY)
