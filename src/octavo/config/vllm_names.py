"""vLLM options that this release does not have, so that people who bring their command lines are told what to do.

A value that vLLM itself would treat as "leave it alone" is accepted and has no effect; any other is refused.
"""

from __future__ import annotations

_LATER = "not in this release; leave it out"
_TEXT_ONLY = "text models only; leave it out"
_EDIT_CONFIG = "edit config.json in a local copy of the model"

NOT_HERE: dict[str, tuple[tuple[object, ...], str]] = {
    "allowed_local_media_path": (("",), _TEXT_ONLY),
    "attention_backend": ((), "the kernels choose; leave it out, or use --kernel-backend"),
    "calculate_kv_scales": ((False,), "the KV cache has the compute dtype; leave it out"),
    "chat_template_content_format": (("auto", "string"), "templates get the text of messages; leave it out"),
    "code_revision": ((), "no code from a model's repository is ever run; leave it out"),
    "collect_detailed_traces": ((), _LATER),
    "compilation_config": ((), "there is no compiler here; leave it out"),
    "cpu_offload_gb": ((0,), _LATER),
    "device": (("auto", "cpu"), "this release runs on CPUs; leave it out"),
    "disable_cascade_attn": ((True, False), _LATER),
    "disable_custom_all_reduce": ((True, False), _LATER),
    "disable_frontend_multiprocessing": ((False,), "use --in-process"),
    "disable_log_requests": ((True, False), "requests are logged only with --enable-log-requests; leave it out"),
    "disable_sliding_window": ((False,), "the model says which layers have a window; leave it out"),
    "enable_expert_parallel": ((False,), _LATER),
    "enable_lora": ((False,), _LATER),
    "enable_log_outputs": ((False,), "answers are never logged; leave it out"),
    "enable_prompt_embeds": ((False,), _LATER),
    "enable_reasoning": ((True,), "reasoning is found in the chat template; --reasoning-parser none turns it off"),
    "enable_sleep_mode": ((False,), _LATER),
    "enable_tokenizer_info_endpoint": ((False,), _LATER),
    "guided_decoding_backend": (("auto", "guidance"), "there is one back end, guidance; leave it out"),
    "h11_max_header_count": ((256,), "use --max-header-count"),
    "h11_max_incomplete_event_size": ((4194304,), "use --max-header-bytes"),
    "hf_overrides": (({},), _EDIT_CONFIG),
    "kv_cache_dtype": (("auto",), "the KV cache has the compute dtype; use --dtype"),
    "kv_events_config": ((), _LATER),
    "kv_transfer_config": ((), _LATER),
    "limit_mm_per_prompt": (({},), _TEXT_ONLY),
    "logits_processors": (([],), _LATER),
    "logprobs_mode": (("raw_logprobs",), "logprobs are of the raw logits; leave it out"),
    "max_cpu_loras": ((), _LATER),
    "max_long_partial_prefills": ((1,), _LATER),
    "max_lora_rank": ((16,), _LATER),
    "max_loras": ((1,), _LATER),
    "max_num_partial_prefills": ((1,), _LATER),
    "max_seq_len_to_capture": ((8192,), "nothing is captured; leave it out"),
    "mm_processor_kwargs": (({},), _TEXT_ONLY),
    "model_impl": (("auto", "vllm"), "models are Octavo's own; leave it out"),
    "middleware": (([],), "put a proxy in front of the server"),
    "prefix_caching_hash_algo": (("sha256",), "there is one; leave it out, or give --prefix-hash-key"),
    "quantization": ((), "the format is read from the files; leave it out"),
    "reasoning_config": ((), "its markers are the parser's own; leave it out"),
    "reasoning_parser_plugin": (("",), "install a package with an entry point octavo.reasoning_parsers; leave it out"),
    "rope_scaling": (({},), _EDIT_CONFIG),
    "rope_theta": ((), _EDIT_CONFIG),
    "runner": (("auto", "generate"), "this release generates text only; leave it out"),
    "scheduler_cls": ((), _LATER),
    "speculative_config": ((), _LATER),
    "ssl_ca_certs": ((), "certificates of clients are not checked; put a proxy in front of the server"),
    "swap_space": ((0, 4), "preempted requests are computed again; leave it out"),
    "task": (("auto", "generate"), "this release generates text only; leave it out"),
    "tool_parser_plugin": (("",), "install a package with an entry point octavo.tool_parsers; leave it out"),
    "tokenizer_mode": (("auto", "hf"), "there is one kind of tokenizer; leave it out"),
    "worker_cls": (("auto",), _LATER),
}
"""Name -> (values without effect; None always is one, remedy for others)."""


def is_without_effect(name: str, value: object) -> bool:
    """True: vLLM's option `name` is one we do not have, and `value` asks nothing of it."""
    if name not in NOT_HERE:
        return False
    neutral, _ = NOT_HERE[name]
    return value is None or any(value == item or str(value) == str(item) for item in neutral)


def is_switch(name: str) -> bool:
    """True: vLLM's option `name` is one we do not have, and is a flag without a value."""
    return name in NOT_HERE and any(isinstance(value, bool) for value in NOT_HERE[name][0])
