"""Constrained texts of SmolLM2 before an independent validator: hundreds of schemas, three seeds each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fakes.grammar_tokenizer import make_test_backend
from fakes.random_schemas import draw_schemas
from oracle.validator import find_errors

from octavo import LLM, SamplingParams
from octavo.base.errors import ValidationError
from octavo.proto.structured import StructuredOutputsParams

pytestmark = [pytest.mark.slow, pytest.mark.needs_smollm2]

SUITE = Path(__file__).parent.parent / "data" / "json-schema-test-suite"
DIALECTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
NUM_DRAWN = 150
SUITE_STRIDE = 2
MAX_TOKENS = 96
FORMS: tuple[dict[str, Any], ...] = ({}, {"disable_any_whitespace": True}, {"whitespace_pattern": r"[ \n]{0,3}"})
"""Of the blanks between tokens of JSON, for each seed another."""


class Case(NamedTuple):
    name: str
    schema: dict[str, Any]
    prompt: str
    temperature: float


def drawn_cases() -> list[Case]:
    return [
        Case(f"drawn {number}", schema, "An example in JSON: ", 1.0)
        for number, schema in enumerate(draw_schemas(11, NUM_DRAWN))
    ]


def suite_cases() -> Iterator[Case]:
    """Schemas of the test suite that are taken; valid instances are the prompt, so that texts are short."""
    for dialect, uri in DIALECTS.items():
        for path in sorted((SUITE / dialect).glob("*.json")):
            for group in json.loads(path.read_text()):
                values = [test["data"] for test in group["tests"] if test["valid"]][:3]
                schema = group["schema"]
                if not isinstance(schema, dict) or r"\\p" in json.dumps(schema):
                    continue  # \p is a class of ECMA-262 that the validator cannot read
                if not values or any(isinstance(value, int | float) for value in values):
                    continue  # the model does not end a bare number that may go on
                examples = [json.dumps(value) for value in values]
                case = {"$schema": uri, **schema}
                if is_taken(case):
                    prompt = "\n".join(["Examples in JSON:", *(examples * 3), ""])
                    yield Case(f"{dialect}/{path.stem}: {group['description']}", case, prompt, 0.7)


def is_taken(schema: dict[str, Any]) -> bool:
    try:
        make_test_backend().prepare(StructuredOutputsParams(json=schema).spec)
    except ValidationError:
        return False
    return True


@pytest.mark.timeout(1200)
def test_every_text_that_ends_is_valid_and_few_do_not_end(smollm2_path: Path) -> None:
    cases = [*drawn_cases(), *list(suite_cases())[::SUITE_STRIDE]]
    assert len(cases) >= 200
    asked = [(case, seed) for seed in range(len(FORMS)) for case in cases]
    params = [
        SamplingParams(
            temperature=case.temperature,
            seed=1000 * seed + number,
            max_tokens=MAX_TOKENS,
            structured_outputs=StructuredOutputsParams(json=case.schema, **FORMS[seed]),
        )
        for number, (case, seed) in enumerate(asked)
    ]
    with LLM(str(smollm2_path), dtype="bfloat16", max_num_seqs=64, max_model_len=1024) as llm:
        outputs = llm.generate([case.prompt for case, _ in asked], params, use_tqdm=False)
    completions = [output.outputs[0] for output in outputs]
    ends = Counter(completion.finish_reason for completion in completions)
    print(f"{len(cases)} schemas x {len(FORMS)} seeds: {dict(ends)}")
    wrong = [
        (case.name, seed, completion.text, errors)
        for (case, seed), completion in zip(asked, completions, strict=True)
        if completion.finish_reason == "stop" and (errors := find_errors(completion.text, case.schema))
    ]
    assert wrong == []
    assert set(ends) <= {"stop", "length"}
    assert ends["length"] <= 0.12 * len(asked)
