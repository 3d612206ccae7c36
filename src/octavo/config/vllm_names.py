"""vLLM options that this release does not have, so that people who bring their command lines are told what to do.

A value that vLLM itself would treat as "leave it alone" is accepted and has no effect; any other is refused.
"""

from __future__ import annotations

_LATER = "not in this release; leave it out"

NOT_HERE: dict[str, tuple[tuple[object, ...], str]] = {
    "attention_backend": ((), "the kernels choose; leave it out, or use --kernel-backend"),
    "compilation_config": ((), "there is no compiler here; leave it out"),
    "cpu_offload_gb": ((0,), _LATER),
    "disable_custom_all_reduce": ((True, False), _LATER),
    "enable_expert_parallel": ((False,), _LATER),
    "enable_lora": ((False,), _LATER),
    "enable_prompt_embeds": ((False,), _LATER),
    "enable_sleep_mode": ((False,), _LATER),
    "h11_max_header_count": ((256,), "use --max-header-count"),
    "h11_max_incomplete_event_size": ((4194304,), "use --max-header-bytes"),
    "hf_overrides": (({},), "edit config.json in a local copy of the model"),
    "kv_cache_dtype": (("auto",), "the KV cache has the compute dtype; use --dtype"),
    "kv_transfer_config": ((), _LATER),
    "limit_mm_per_prompt": (({},), "text models only; leave it out"),
    "logits_processors": (([],), _LATER),
    "logprobs_mode": (("raw_logprobs",), "logprobs are of the raw logits; leave it out"),
    "max_seq_len_to_capture": ((8192,), "nothing is captured; leave it out"),
    "model_impl": (("auto", "vllm"), "models are Octavo's own; leave it out"),
    "middleware": (([],), "put a proxy in front of the server"),
    "quantization": ((), "the format is read from the files; leave it out"),
    "reasoning_config": ((), "its markers are the parser's own; leave it out"),
    "reasoning_parser_plugin": (("",), "install a package with an entry point octavo.reasoning_parsers; leave it out"),
    "runner": (("auto", "generate"), "this release generates text only; leave it out"),
    "speculative_config": ((), _LATER),
    "swap_space": ((0, 4), "preempted requests are computed again; leave it out"),
    "tool_parser_plugin": (("",), "install a package with an entry point octavo.tool_parsers; leave it out"),
    "tokenizer_mode": (("auto", "hf"), "there is one kind of tokenizer; leave it out"),
}
"""Name -> (values without effect; None always is one, remedy for others)."""


def is_without_effect(name: str, value: object) -> bool:
    """True: vLLM's option `name` is one we do not have, and `value` asks nothing of it."""
    if name not in NOT_HERE:
        return False
    neutral, _ = NOT_HERE[name]
    return value is None or any(value == item or str(value) == str(item) for item in neutral)
