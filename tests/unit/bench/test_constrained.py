"""What constraints add to a step, measured on the tiny model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.hf_folder import write_hf_folder

from octavo import LLM
from octavo.base.errors import ValidationError
from octavo.bench.constrained import ConstrainedOptions, ConstrainedReport, run_constrained

ENGINE = {"kernel_backend": "reference", "max_num_seqs": 4, "max_model_len": 256, "num_gpu_blocks_override": 100}


def test_steps_of_both_kinds_are_measured_and_the_engine_is_left_idle(tmp_path: Path) -> None:
    options = ConstrainedOptions(num_constrained=2, num_free=1, input_len=5, num_steps=3, num_rounds=2)
    with LLM(str(write_hf_folder(tmp_path / "tiny")), **ENGINE) as llm:
        engine = llm.engine
        report = run_constrained(engine.front_end, engine.inputs, options, seed=1)
        assert not engine.front_end.has_work
    assert (len(report.free_s), len(report.constrained_s)) == (6, 6)
    assert min(report.free_s + report.constrained_s) > 0


def test_a_context_too_short_for_the_steps_is_refused(tmp_path: Path) -> None:
    options = ConstrainedOptions(num_constrained=1, num_free=0, input_len=5, num_steps=60, num_rounds=1)
    with LLM(str(write_hf_folder(tmp_path / "tiny")), **ENGINE | {"max_model_len": 32}) as llm:
        with pytest.raises(ValidationError, match="--num-steps=60"):
            run_constrained(llm.engine.front_end, llm.engine.inputs, options, seed=1)
        assert not llm.engine.front_end.has_work


def test_a_report_says_what_was_added() -> None:
    report = ConstrainedReport(free_s=[0.010, 0.010, 0.040], constrained_s=[0.011, 0.011, 0.011])
    assert report.added_share == pytest.approx(0.1)
    assert "constraints add 10.0 % to the median step" in str(report)
    assert json.loads(json.dumps(report.as_json()))["constrained_step_s"]["max"] == 0.011


@pytest.mark.parametrize("field", ["num_constrained", "input_len", "num_steps", "num_rounds"])
def test_nothing_to_measure_is_refused_by_its_flag(field: str) -> None:
    with pytest.raises(ValidationError, match="--" + field.replace("_", "-")):
        ConstrainedOptions(**{field: 0})
