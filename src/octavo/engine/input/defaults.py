"""Sampling parameters a model brings along: which apply when the caller gives none, and what ends a text.

Owns: `generation_config.json` values and vLLM's rules for them.   Does not own: reading the model's own (loading).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from octavo.base.errors import ConfigError, ConfigProblem, ValidationError
from octavo.proto.sampling import SamplingParams

_SAMPLING_KEYS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "max_new_tokens": "max_tokens",
    "max_tokens": "max_tokens",
}
"""generation_config.json -> SamplingParams. Other keys are not about sampling here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTokens:
    """Token ids that end a text. The model's own one gives no stop_reason, the others give their id."""

    eos: tuple[int, ...]
    stop: tuple[int, ...] = ()


def read_generation_config(
    source: str, of_the_model: Mapping[str, object], overrides: Mapping[str, object]
) -> dict[str, object]:
    """The defaults that hold: `source` is "auto" (the model's), "vllm" (none) or a folder; overrides win.

    Raises ConfigError for a folder without a readable generation_config.json, and for overrides without effect.
    """
    check_overrides(overrides)
    if source == "auto":
        chosen = dict(of_the_model)
    elif source == "vllm":
        chosen = {}
    else:
        path = Path(source) / "generation_config.json"
        try:
            chosen = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            remedy = f"{path} cannot be read ({error}); use auto, vllm or a folder that has one"
            raise ConfigError([ConfigProblem("generation_config", source, remedy)]) from None
    return {**chosen, **overrides}


def check_overrides(overrides: Mapping[str, object]) -> None:
    """--override-generation-config says only what has a meaning here. Raises ConfigError naming what has none."""
    known = (*_SAMPLING_KEYS, "eos_token_id")
    problems = []
    for key in sorted(set(overrides) - set(known)):
        near = difflib.get_close_matches(key, known, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        problems.append(ConfigProblem(f"override_generation_config.{key}", overrides[key], f"has no effect; {remedy}"))
    if problems:
        raise ConfigError(problems)


def apply_constraint_defaults(params: SamplingParams, switches: Mapping[str, object]) -> SamplingParams:
    """The constraint, if there is one, with the switches of --structured-outputs-config that are on."""
    constraint = params.structured_outputs
    if constraint is None:
        return params
    changes = {
        name: True
        for name in ("disable_any_whitespace", "disable_additional_properties")
        if switches.get(name) and not getattr(constraint, name)
    }
    if constraint.whitespace_pattern is not None:
        changes.pop("disable_any_whitespace", None)  # the request says which blanks there may be
    return params.clone(structured_outputs=structs.replace(constraint, **changes)) if changes else params


def default_max_tokens(generation_config: Mapping[str, object]) -> int | None:
    """The model's own cap on output tokens; None: it has none, whatever SamplingParams has by default."""
    found = [generation_config.get(key) for key in ("max_tokens", "max_new_tokens")]
    return next((value for value in found if isinstance(value, int)), None)


def default_sampling_params(generation_config: Mapping[str, object]) -> SamplingParams:
    """SamplingParams with the model's defaults where it has any. Raises ConfigError for values out of range."""
    chosen: dict[str, Any] = {}
    for key, name in _SAMPLING_KEYS.items():
        if generation_config.get(key) is not None:
            chosen[name] = generation_config[key]
    try:
        return SamplingParams(**chosen)
    except ValidationError as error:
        remedy = f"the model's defaults hold {error}; use --generation-config vllm, or --override-generation-config"
        raise ConfigError([ConfigProblem("generation_config", error.parameter, remedy)]) from None


def find_end_tokens(
    tokenizer_eos: int | None,
    model_eos: tuple[int, ...],
    generation_config: Mapping[str, object],
    *,
    vocab_size: int,
) -> EndTokens:
    """The tokenizer's end token is the primary one (else the model's first); all others become stop ids.

    Ids that the logits do not have can never be written and are left out.
    """
    configured = generation_config.get("eos_token_id")
    more = configured if isinstance(configured, list | tuple) else () if configured is None else (configured,)
    first = () if tokenizer_eos is None else (tokenizer_eos,)
    found = dict.fromkeys([*first, *model_eos, *(token_id for token_id in more if isinstance(token_id, int))])
    ids = tuple(token_id for token_id in found if 0 <= token_id < vocab_size)
    return EndTokens(eos=ids[:1], stop=ids[1:])


def apply_end_tokens(params: SamplingParams, end: EndTokens) -> tuple[SamplingParams, tuple[int, ...]]:
    """(params with the model's further end tokens among stop_token_ids, eos ids); neither under ignore_eos."""
    if params.ignore_eos:
        return params, ()
    own = params.stop_token_ids or []
    merged = list(dict.fromkeys([*own, *end.stop]))
    return (params.clone(stop_token_ids=merged) if len(merged) > len(own) else params), end.eos
