"""`octavo generate`: answer one prompt; the text on stdout as it comes, timings on stderr.

Owns: reading the prompt, showing the answer.   Does not own: anything about generating it.
Ctrl-C ends between two steps, leaves what was written on the screen, and exits with 130. An answer that ended with an
error exits with 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

from octavo.cli.engine_flags import add_engine_flags, config_from_args
from octavo.cli.parser import UsageError

DEFAULT_MAX_TOKENS = 256
EXIT_FAILED = 1
_SAMPLING_FLAGS: dict[str, tuple[Callable[[str], Any], str]] = {
    "temperature": (float, "0 takes the most probable token each time (default: 0)"),
    "top-p": (float, "sample from the smallest set of tokens with this probability (default: 1)"),
    "top-k": (int, "sample from so many tokens; 0: all (default: 0)"),
    "min-p": (float, "leave out tokens below this share of the best one's probability (default: 0)"),
    "repetition-penalty": (float, "above 1 avoids tokens that were seen (default: 1)"),
    "presence-penalty": (float, "above 0 avoids tokens that were written (default: 0)"),
    "frequency-penalty": (float, "above 0 avoids tokens in proportion to how often they were written (default: 0)"),
    "max-tokens": (int, f"most tokens of the answer (default: {DEFAULT_MAX_TOKENS})"),
    "min-tokens": (int, "fewest tokens of the answer (default: 0)"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the prompt; read from standard input if left out")
    parser.add_argument("--system", metavar="TEXT", help="a system message before the prompt")
    parser.add_argument("--raw", action="store_true", help="continue the prompt as it is, without the chat template")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end in place of the text")
    parser.add_argument("--pull", action="store_true", help="download the model first if the cache does not have it")
    parser.add_argument("--stop", action="append", metavar="TEXT", help="end the answer before this text; repeatable")
    parser.add_argument("--ignore-eos", action="store_true", help="go on behind the model's own end")
    for name, (kind, text) in _SAMPLING_FLAGS.items():
        parser.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "X", help=text)
    add_engine_flags(parser)


def run(args: argparse.Namespace) -> int:
    from octavo.llm import LLM

    config = config_from_args(args)
    params = _make_params(args)
    text = _read_prompt(args.prompt)
    if args.pull:
        from octavo.cli.pull import pull_if_alias

        pull_if_alias(config.model.model)
    with LLM.from_config(config) as llm:
        output = _generate(llm.engine, _make_prompt(llm.engine, text, args), params, is_silent=args.json)
    if args.json:
        print(json.dumps(_as_json(output), ensure_ascii=False))
    print(_describe(output), file=sys.stderr)
    return EXIT_FAILED if output.outputs[0].finish_reason == "error" else 0


def _read_prompt(given: str | None) -> str:
    if given is not None:
        return given
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError('give a prompt: octavo generate "What is the capital of France?", or pipe one in')
    return sys.stdin.read()


def _generate(engine: Any, prompt: Any, params: Any, *, is_silent: bool) -> Any:
    """Run one request on an `engine.build.Engine`, writing its text as it comes. Returns the last RequestOutput."""
    front_end = engine.front_end
    request = engine.inputs.prepare(prompt, params, request_id="generate", arrival_s=front_end.now_s())
    output, num_shown = None, 0
    try:
        with closing(front_end.drive([request])) as outputs:
            for output in outputs:
                if not is_silent:
                    print(output.outputs[0].text[num_shown:], end="", flush=True)
                    num_shown = len(output.outputs[0].text)
    finally:
        if num_shown:
            print(flush=True)
    return output


def _make_prompt(engine: Any, text: str, args: argparse.Namespace) -> Any:
    """The prompt in the model's chat format, or with --raw and for models without one as it is."""
    from octavo.engine.input.prompts import ChatOptions

    has_template = engine.tokenizer is not None and engine.tokenizer.chat_template is not None
    if args.raw or not (has_template or engine.config.options.model.chat_template):
        if args.system:
            raise UsageError("--system needs a chat template: leave out --raw, or use a model that has one")
        return engine.inputs.read(text)
    messages = [{"role": "system", "content": args.system}] if args.system else []
    return engine.inputs.render_chat([*messages, {"role": "user", "content": text}], ChatOptions())


def _make_params(args: argparse.Namespace) -> Any:
    """SamplingParams of the flags; cumulative, so that the last output is the whole one."""
    from octavo.proto.sampling import SamplingParams

    chosen: dict[str, Any] = {"temperature": 0.0, "max_tokens": DEFAULT_MAX_TOKENS}
    for flag in _SAMPLING_FLAGS:
        name = flag.replace("-", "_")
        if getattr(args, name) is not None:
            chosen[name] = getattr(args, name)
    return SamplingParams(**chosen, stop=args.stop, ignore_eos=args.ignore_eos)


def _as_json(output: Any) -> dict[str, Any]:
    completion, metrics = output.outputs[0], output.metrics
    assert metrics is not None
    return {
        "prompt": output.prompt,
        "text": completion.text,
        "token_ids": completion.token_ids,
        "finish_reason": completion.finish_reason,
        "stop_reason": completion.stop_reason,
        "error": completion.error,
        "num_prompt_tokens": len(output.prompt_token_ids),
        "num_cached_tokens": output.num_cached_tokens,
        "num_output_tokens": len(completion.token_ids),
        "ttft_s": metrics.time_to_first_token_s,
        "latency_s": metrics.latency_s,
        "tokens_per_second": _tokens_per_second(output),
    }


def _tokens_per_second(output: Any) -> float | None:
    """Output tokens over the time from the first to the last; None for fewer than two."""
    metrics = output.metrics
    num_tokens = len(output.outputs[0].token_ids)
    if metrics is None or metrics.first_token_time is None or metrics.last_token_time is None or num_tokens < 2:
        return None
    seconds: float = metrics.last_token_time - metrics.first_token_time
    return (num_tokens - 1) / max(seconds, 1e-9)


def _describe(output: Any) -> str:
    completion, metrics = output.outputs[0], output.metrics
    parts = [f"{len(output.prompt_token_ids)} prompt tokens", f"{len(completion.token_ids)} output tokens"]
    rate = _tokens_per_second(output)
    if metrics is not None and metrics.time_to_first_token_s is not None:
        parts.append(f"TTFT {1000 * metrics.time_to_first_token_s:.0f} ms")
    if rate is not None:
        parts.append(f"{rate:.1f} tokens/s")
    parts.append(f"ended by {completion.finish_reason}")
    if completion.error:
        parts.append(completion.error)
    return "[" + ", ".join(parts) + "]"
