"""The names SamplingParams answers to, and those of vLLM that are known here but not done.

Owns: the refusal of what this release cannot honour, so that a constraint is never dropped in silence.
Does not own: the fields themselves (`sampling.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import msgspec

from octavo.base.errors import ValidationError
from octavo.proto.sampling_checks import refuse

_NOT_YET = "is not supported by this release; leave it out"
_GUIDED = "is an old name; use structured_outputs"

REFUSED: Mapping[str, tuple[tuple[object, ...], str]] = {
    "repetition_detection": ((None,), _NOT_YET),
    "extra_args": ((None, {}), _NOT_YET),
    "flat_logprobs": ((False,), _NOT_YET),
    "stream_interval": ((None, 1), _NOT_YET),
    "watermarking": ((None, False), _NOT_YET),
    "prompt_logprob_token_ids": ((None,), _NOT_YET),
    "prompt_logprob_start": ((None, 0), _NOT_YET),
    "routed_experts_prompt_start": ((None, 0), _NOT_YET),
    "trace_decode_token_ids": ((None,), _NOT_YET),
    "skip_clone": ((False,), _NOT_YET),
    "logits_processors": ((None, []), "functions per request are not supported; leave it out"),
    "truncate_prompt_tokens": ((None,), "is not supported; cut the prompt's token ids before the call"),
    "use_beam_search": ((None, False), "beam search is not supported by this release; leave it out"),
    "beam_width": ((None,), "beam search is not supported by this release; leave it out"),
    "length_penalty": ((None, 1.0), "belongs to beam search, which this release does not support; leave it out"),
    "early_stopping": ((None, False), "belongs to beam search, which this release does not support; leave it out"),
    "best_of": ((None, 1), "was removed from vLLM; ask for n texts and choose among them"),
    "guided_decoding": ((None,), _GUIDED),
    "guided_json": ((None,), _GUIDED),
    "guided_regex": ((None,), _GUIDED),
    "guided_choice": ((None,), _GUIDED),
    "guided_grammar": ((None,), _GUIDED),
    "guided_json_object": ((None, False), _GUIDED),
    "guided_decoding_backend": ((None,), _GUIDED),
    "guided_whitespace_pattern": ((None,), _GUIDED),
    "response_format": ((None,), "belongs to the HTTP API; use structured_outputs"),
}
"""Name -> (values that ask for nothing and are let through, what to say of any other)."""


def check_refused(name: str, value: object) -> None:
    """Raise ValidationError if `value` asks for something this release does not do."""
    neutral, remedy = REFUSED[name]
    if not any(type(value) is type(known) and value == known for known in neutral):
        refuse(name, value, remedy)


def refuse_unknown(name: str, value: object, known: Iterable[str], *, prefix: str = "") -> NoReturn:
    """Raise ValidationError for a name that nobody knows, with the one it resembles."""
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ValidationError(f"{prefix}{name}: no such sampling parameter{hint}", parameter=f"{prefix}{name}", value=value)


class CheckedNames(msgspec.StructMeta):
    """Makes a struct class that explains the keyword it does not know. Raises ValidationError."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - set(self.__struct_fields__):
            if name not in REFUSED:
                refuse_unknown(name, kwargs[name], [*self.__struct_fields__, *REFUSED])
            check_refused(name, kwargs.pop(name))
        return super().__call__(*args, **kwargs)
