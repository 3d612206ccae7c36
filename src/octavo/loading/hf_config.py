"""config.json of a Hugging Face folder -> ModelSpec.

Owns: the keys, the defaults they have when absent (those of the model classes in transformers, versions 4 and 5), and
the refusal of what the engine does not compute.   Does not own: weights, tokenizers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from octavo.config.model_spec import MAX_POSITION, Activation, AttentionKind, ModelSpec
from octavo.loading.fields import Fields
from octavo.loading.hf_rope import read_rope

WRAPPERS = {"gemma3": "gemma3_text"}
"""Multimodal model types whose text part is described under text_config."""

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
}
LAYER_KINDS: dict[str, AttentionKind] = {"full_attention": "full", "sliding_attention": "sliding_window"}
_MAX_LAYERS = 4096
_MAX_WIDTH = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class _Defaults:
    """Values of keys that config.json may leave out. None: the key is required, or follows from others."""

    num_heads: int | None = None
    num_kv_heads: int | None = None
    """None: as many as query heads."""
    head_dim: int | None = None
    """None: hidden size / heads."""
    vocab_size: int | None = None
    max_position: int
    window: int | None = None
    activation: str = "silu"
    tie_word_embeddings: bool = False


_DEFAULTS = {
    "llama": _Defaults(max_position=2048),
    "mistral": _Defaults(max_position=131072, num_kv_heads=8, window=4096),
    "qwen2": _Defaults(max_position=32768, num_kv_heads=32, window=4096),
    "qwen3": _Defaults(max_position=32768, num_kv_heads=32, head_dim=128, window=4096),
    "gemma3_text": _Defaults(
        max_position=131072,
        num_heads=8,
        num_kv_heads=4,
        head_dim=256,
        vocab_size=262208,
        window=4096,
        activation="gelu_pytorch_tanh",
        tie_word_embeddings=True,
    ),
}
"""Its keys are the model types that are supported."""


def read_spec(config: Fields, generation: Fields) -> ModelSpec:
    """`generation` is generation_config.json, maybe empty. Raises LoadError naming the key at fault."""
    text, model_type = _text_config(config)
    defaults = _DEFAULTS[model_type]
    for key in ("quantization_config", "compression_config"):
        if key in config or key in text:
            raise config.error(key, "asks for a quantized format that is not supported")
    num_heads = _integer(text, "num_attention_heads", defaults.num_heads, high=_MAX_LAYERS)
    hidden_size = text.integer("hidden_size", high=_MAX_WIDTH)
    head_dim = text.optional_integer("head_dim", high=4096) or defaults.head_dim or hidden_size // num_heads
    if head_dim < 2 or head_dim % 2:
        raise text.error("head_dim", f"= {head_dim} must be even and positive")
    kinds, window = _windows(text, model_type, text.integer("num_hidden_layers", high=_MAX_LAYERS), defaults)
    rope, rope_local = read_rope(text, model_type)
    is_gemma = model_type == "gemma3_text"
    bias = text.flag("attention_bias", False) and model_type in ("llama", "qwen3", "gemma3_text")
    return ModelSpec(
        model_type=model_type,
        vocab_size=_integer(text, "vocab_size", defaults.vocab_size, high=_MAX_WIDTH),
        hidden_size=hidden_size,
        intermediate_size=text.integer("intermediate_size", high=_MAX_WIDTH),
        num_layers=len(kinds),
        num_heads=num_heads,
        num_kv_heads=_num_kv_heads(text, num_heads, defaults),
        head_dim=head_dim,
        max_position=_integer(text, "max_position_embeddings", defaults.max_position, high=MAX_POSITION),
        norm_eps=_default(text.optional_number("rms_norm_eps", low=0.0, high=1.0), 1e-6),
        rope=rope,
        rope_local=rope_local,
        layer_kinds=kinds,
        sliding_window=window,
        activation=_activation(text, defaults),
        attention_bias=bias or model_type == "qwen2",
        attention_out_bias=bias,
        mlp_bias=text.flag("mlp_bias", False) and model_type == "llama",
        qk_norm=model_type in ("qwen3", "gemma3_text"),
        attention_scale=_attention_scale(text, head_dim, is_gemma=is_gemma),
        attention_softcap=text.optional_number("attn_logit_softcapping", low=0.0) or None,
        logit_softcap=text.optional_number("final_logit_softcapping", low=0.0) or None,
        embedding_scale=math.sqrt(hidden_size) if is_gemma else 1.0,
        tie_word_embeddings=_tie(config, text, defaults),
        bos_token_id=text.optional_integer("bos_token_id", low=0) if not is_gemma else _gemma_bos(text),
        eos_token_ids=_end_tokens(generation, config, text),
        checkpoint_dtype=_dtype(config, text),
    )


def _text_config(config: Fields) -> tuple[Fields, str]:
    """(the part that describes the decoder, its model type)."""
    model_type = config.text("model_type")
    if model_type in WRAPPERS:
        section = config.optional_section("text_config")
        if section is None:
            raise config.error("text_config", "is missing")
        return _checked_text(section), WRAPPERS[model_type]
    if model_type not in _DEFAULTS:
        needs_code = "; it needs code of its own (auto_map), which is never run" if "auto_map" in config else ""
        supported = ", ".join([*_DEFAULTS, *WRAPPERS])
        raise config.error("model_type", f"= {model_type!r} is not supported (supported: {supported}){needs_code}")
    return _checked_text(config), model_type


def _checked_text(text: Fields) -> Fields:
    if text.flag("use_bidirectional_attention", False):
        raise text.error("use_bidirectional_attention", "= true is that of an embedding model, not supported")
    return text


def _integer(fields: Fields, key: str, default: int | None, *, high: int = 2**31 - 1) -> int:
    value = fields.optional_integer(key, high=high)
    if value is None:
        value = default
    return value if value is not None else fields.integer(key)


def _default(value: float | None, default: float) -> float:
    return default if value is None else value


def _num_kv_heads(text: Fields, num_heads: int, defaults: _Defaults) -> int:
    # A null means "as many as query heads", an absent key the class's default.
    is_null = "num_key_value_heads" in text.values and "num_key_value_heads" not in text
    default = num_heads if is_null else defaults.num_kv_heads or num_heads
    num_kv_heads = _integer(text, "num_key_value_heads", default)
    if num_heads % num_kv_heads:
        raise text.error("num_key_value_heads", f"= {num_kv_heads} does not divide the {num_heads} query heads")
    return num_kv_heads


def _activation(text: Fields, defaults: _Defaults) -> Activation:
    key = "hidden_activation" if defaults.activation != "silu" else "hidden_act"
    name = text.optional_text(key) or defaults.activation
    if name not in ACTIVATIONS:
        raise text.error(key, f"= {name!r} is not supported (supported: {', '.join(ACTIVATIONS)})")
    return ACTIVATIONS[name]


def _windows(
    text: Fields, model_type: str, num_layers: int, defaults: _Defaults
) -> tuple[tuple[AttentionKind, ...], int | None]:
    """(kind of each layer, the window if a layer has it)."""
    window = _window_size(text, model_type, defaults)
    kinds = _listed_kinds(text, num_layers) or _kinds_by_rule(text, model_type, num_layers)
    if window is None or "sliding_window" not in kinds:
        full: AttentionKind = "full"
        return (full,) * num_layers, None
    return kinds, window


def _window_size(text: Fields, model_type: str, defaults: _Defaults) -> int | None:
    if model_type == "llama" or (model_type in ("qwen2", "qwen3") and not text.flag("use_sliding_window", False)):
        return None
    if "sliding_window" in text.values:
        return text.optional_integer("sliding_window")
    return defaults.window


def _kinds_by_rule(text: Fields, model_type: str, num_layers: int) -> tuple[AttentionKind, ...]:
    """Where config.json does not list the layers."""
    full: AttentionKind = "full"
    local: AttentionKind = "sliding_window"
    if model_type == "mistral":
        return (local,) * num_layers
    if model_type in ("qwen2", "qwen3"):
        first = text.optional_integer("max_window_layers", low=0)
        first = 28 if first is None else first
        return tuple(local if layer >= first else full for layer in range(num_layers))
    if model_type == "gemma3_text":
        pattern = text.optional_integer("sliding_window_pattern") or 6
        return tuple(full if (layer + 1) % pattern == 0 else local for layer in range(num_layers))
    return (full,) * num_layers


def _listed_kinds(text: Fields, num_layers: int) -> tuple[AttentionKind, ...] | None:
    key = "layer_types"
    listed = text.raw(key)
    if listed is None:
        return None
    if not isinstance(listed, list) or len(listed) != num_layers:
        raise text.error(key, f"must be a list of {num_layers} kinds, one a layer")
    for kind in listed:
        if not isinstance(kind, str) or kind not in LAYER_KINDS:
            raise text.error(key, f"holds {kind!r}, which is not supported (supported: {', '.join(LAYER_KINDS)})")
    return tuple(LAYER_KINDS[kind] for kind in listed)


def _attention_scale(text: Fields, head_dim: int, *, is_gemma: bool) -> float:
    if not is_gemma:
        return math.pow(head_dim, -0.5)
    return math.pow(_default(text.optional_number("query_pre_attn_scalar", low=1e-6), 256.0), -0.5)


def _tie(config: Fields, text: Fields, defaults: _Defaults) -> bool:
    return config.flag("tie_word_embeddings", text.flag("tie_word_embeddings", defaults.tie_word_embeddings))


def _gemma_bos(text: Fields) -> int:
    bos = text.optional_integer("bos_token_id", low=0)
    return 2 if bos is None else bos


def _end_tokens(*sources: Fields) -> tuple[int, ...]:
    """All ids under eos_token_id (one or a list), in order, each once."""
    key = "eos_token_id"
    ends: list[int] = []
    for fields in sources:
        value = fields.raw(key)
        items = value if isinstance(value, list) else [value]
        for item in items:
            end = Fields({key: item}, fields.source).optional_integer(key, low=0)
            if end is not None:
                ends.append(end)
    return tuple(dict.fromkeys(ends))


def _dtype(config: Fields, text: Fields) -> str:
    for fields in (config, text):
        for key in ("dtype", "torch_dtype"):
            name = fields.optional_text(key)
            if name is not None:
                name = name.removeprefix("torch.")
                if name not in ("float32", "float16", "bfloat16", "auto"):
                    raise fields.error(key, f"= {name!r} is not supported (supported: float32, float16, bfloat16)")
                return "float32" if name == "auto" else name
    return "float32"


def read_generation_defaults(generation: Fields) -> dict[str, object]:
    """What generation_config.json recommends for sampling, under its own names."""
    defaults: dict[str, object] = {}
    for key in ("temperature", "top_p", "min_p", "repetition_penalty"):
        number = generation.optional_number(key)
        if number is not None:
            defaults[key] = number
    for key in ("top_k", "max_new_tokens"):
        count = generation.optional_integer(key, low=-1)
        if count is not None:
            defaults[key] = count
    return defaults
