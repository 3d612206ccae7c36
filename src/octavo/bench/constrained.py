"""What constraints add to a step: the same requests decoded side by side, once all free, once some of them constrained.

Owns: the measurement and its report.   Does not own: flags (cli/bench_constrained.py), the engine.
Only steps count in which every request decodes: the batch is equally large in both runs. The two take turns, so that
what else the machine does meets both alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from octavo.base.errors import ValidationError
from octavo.bench.samples import RandomShape, draw_random
from octavo.engine.frontend import FrontEnd
from octavo.engine.input.processor import InputProcessor
from octavo.engine.input.prompts import Prompt
from octavo.proto.sampling import RequestOutputKind, SamplingParams
from octavo.proto.structured import StructuredOutputsParams

LONG = 1000
"""Items or words of each text at least: none ends while it is measured."""
_PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "mail": {"type": "string", "pattern": "^[a-z.]{3,16}@[a-z]{3,12}[.](com|org)$"},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
        "home": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "zip": {"type": "string", "maxLength": 8}},
            "required": ["city", "zip"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "mail", "tags", "home"],
    "additionalProperties": False,
}
CONSTRAINTS = (
    StructuredOutputsParams(json={"type": "array", "items": _PERSON, "minItems": LONG}),
    StructuredOutputsParams(json={"type": "array", "items": {"type": "string"}, "minItems": LONG}),
    StructuredOutputsParams(json={"type": "array", "items": {"type": "number"}, "minItems": LONG}),
    StructuredOutputsParams(regex=r"([A-Z][a-z]{2,12}( [a-z]{1,12}){3,9}[.] )*"),
)
"""Dealt to the constrained requests in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstrainedOptions:
    """What is run. Raises ValidationError for what cannot be."""

    num_constrained: int = 32
    num_free: int = 32
    input_len: int = 32
    num_steps: int = 100
    """Measured steps of each run."""
    num_rounds: int = 5

    def __post_init__(self) -> None:
        for name, least in (
            ("num_constrained", 1),
            ("num_free", 0),
            ("input_len", 1),
            ("num_steps", 1),
            ("num_rounds", 1),
        ):
            value = getattr(self, name)
            if value < least:
                flag = "--" + name.replace("_", "-")
                raise ValidationError(f"{flag}={value}: must be at least {least}", parameter=name, value=value)


@dataclass(slots=True)
class ConstrainedReport:
    """Seconds of every measured step."""

    free_s: list[float] = field(default_factory=list)
    constrained_s: list[float] = field(default_factory=list)

    @property
    def added_share(self) -> float:
        """What constraints add to the median step, as a share of it."""
        return statistics.median(self.constrained_s) / statistics.median(self.free_s) - 1

    def as_json(self) -> dict[str, object]:
        return {
            "free_step_s": _summary(self.free_s),
            "constrained_step_s": _summary(self.constrained_s),
            "added_share": self.added_share,
        }

    def __str__(self) -> str:
        lines = [
            f"{name:<20} median {1e3 * statistics.median(steps):8.3f} ms   mean {1e3 * statistics.fmean(steps):8.3f} ms"
            f"   longest {1e3 * max(steps):8.3f} ms   ({len(steps)} steps)"
            for name, steps in (("all free", self.free_s), ("some constrained", self.constrained_s))
        ]
        return "\n".join([*lines, f"constraints add {100 * self.added_share:.1f} % to the median step"])


def _summary(steps: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(steps), "mean": statistics.fmean(steps), "max": max(steps)}


def run_constrained(
    front_end: FrontEnd, inputs: InputProcessor, options: ConstrainedOptions, *, seed: int
) -> ConstrainedReport:
    """Measure; leaves the engine idle. Raises ValidationError where the requests do not fit the engine."""
    report = ConstrainedReport()
    for number in range(options.num_rounds + 1):
        free = _measure(front_end, inputs, options, num_constrained=0, seed=seed)
        constrained = _measure(front_end, inputs, options, num_constrained=options.num_constrained, seed=seed)
        if number:  # the first round compiles the grammars and warms everything
            report.free_s += free
            report.constrained_s += constrained
    return report


def _measure(
    front_end: FrontEnd, inputs: InputProcessor, options: ConstrainedOptions, *, num_constrained: int, seed: int
) -> list[float]:
    """Seconds of the steps in which all requests decode."""
    num_requests = options.num_constrained + options.num_free
    shape = RandomShape(input_len=options.input_len, output_len=1)
    samples = draw_random(num_requests, shape, vocab_size=inputs.limits.vocab_size, seed=seed)
    for idx, sample in enumerate(samples):
        constraint = CONSTRAINTS[idx % len(CONSTRAINTS)] if idx < num_constrained else None
        params = SamplingParams(
            seed=idx,
            ignore_eos=True,
            max_tokens=None,
            structured_outputs=constraint,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = Prompt(token_ids=sample.prompt_token_ids)
        front_end.submit(inputs.prepare(prompt, params, request_id=f"{idx}", arrival_s=front_end.now_s()))
    try:
        return _time_steps(front_end, num_requests, options.num_steps)
    finally:
        front_end.abort_all()


def _time_steps(front_end: FrontEnd, num_requests: int, num_steps: int) -> list[float]:
    steps: list[float] = []
    previous = front_end.client.stats().scheduler
    started_s = time.perf_counter()
    while len(steps) < num_steps:
        front_end.step()
        now_s = time.perf_counter()
        now = front_end.client.stats().scheduler
        is_decoding = now.num_prompt_tokens == previous.num_prompt_tokens
        if is_decoding and now.num_running == previous.num_running == num_requests:
            steps.append(now_s - started_s)
        elif steps:
            problem = "a text ended, or was preempted, while it was measured; take fewer steps or a longer context"
            raise ValidationError(f"--num-steps={num_steps}: {problem}", parameter="num_steps", value=num_steps)
        previous, started_s = now, time.perf_counter()
    return steps
