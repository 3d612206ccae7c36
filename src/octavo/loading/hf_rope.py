"""Rotary settings of config.json -> RopeSpec.

Two spellings exist: `rope_theta` beside `rope_scaling` (transformers 4), and `rope_parameters` holding both, one object
for all layers or one per kind of layer (transformers 5).
"""

from __future__ import annotations

from octavo.config.model_spec import RopeSpec
from octavo.loading.fields import Fields

DEFAULT_THETA = 10000.0
GEMMA3_THETA = 1_000_000.0


def read_rope(text: Fields, model_type: str) -> tuple[RopeSpec, RopeSpec | None]:
    """(of full-attention layers, of sliding-window layers where they differ). Raises LoadError naming the key."""
    if text.optional_number("partial_rotary_factor") not in (None, 1.0):
        raise text.error("partial_rotary_factor", "other than 1 is not supported")
    is_gemma = model_type == "gemma3_text"
    default_theta = GEMMA3_THETA if is_gemma else DEFAULT_THETA
    parameters = text.optional_section("rope_parameters")
    if parameters is None:
        theta = text.optional_number("rope_theta", low=1.0) or default_theta
        rope = _rope(text.optional_section("rope_scaling"), theta, text)
        if not is_gemma:
            return rope, None
        return rope, RopeSpec(theta=text.optional_number("rope_local_base_freq", low=1.0) or DEFAULT_THETA)
    if "full_attention" not in parameters:
        rope = _rope(parameters, text.optional_number("rope_theta", low=1.0) or default_theta, text)
        return rope, RopeSpec(theta=DEFAULT_THETA) if is_gemma else None
    rope = _rope(parameters.optional_section("full_attention"), default_theta, text)
    local = parameters.optional_section("sliding_attention")
    return rope, None if local is None else _rope(local, DEFAULT_THETA, text)


def _rope(section: Fields | None, theta: float, text: Fields) -> RopeSpec:
    if section is None:
        return RopeSpec(theta=theta)
    theta = section.optional_number("rope_theta", low=1.0) or theta
    if section.optional_number("partial_rotary_factor") not in (None, 1.0):
        raise section.error("partial_rotary_factor", "other than 1 is not supported")
    key = "rope_type" if "rope_type" in section else "type"
    kind = section.optional_text(key) or "default"
    if kind == "default":
        return RopeSpec(theta=theta)
    if kind == "linear":
        return RopeSpec(theta=theta, scaling="linear", factor=section.number("factor", low=1.0))
    if kind != "llama3":
        raise section.error(key, f"= {kind!r} is not supported (supported: default, linear, llama3)")
    low = section.number("low_freq_factor", low=1e-6)
    high = section.number("high_freq_factor", low=1e-6)
    if high <= low:
        raise section.error("high_freq_factor", f"= {high} must be above low_freq_factor = {low}")
    original = section.optional_integer("original_max_position_embeddings")
    return RopeSpec(
        theta=theta,
        scaling="llama3",
        factor=section.number("factor", low=1.0),
        low_freq_factor=low,
        high_freq_factor=high,
        original_max_position=original or text.integer("max_position_embeddings"),
    )
