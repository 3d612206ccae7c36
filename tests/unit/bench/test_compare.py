"""Two engines side by side."""

from __future__ import annotations

import json

import pytest

from octavo.base.errors import ConfigError, OctavoError
from octavo.bench.compare import compare, read_rates
from octavo.cli.main import main


def workload(name, rate_in, rate_out, **others):
    return {"name": name, "input_tokens_per_second": rate_in, "output_tokens_per_second": rate_out} | others


@pytest.fixture
def files(tmp_path):
    slow, fast = tmp_path / "slow.json", tmp_path / "fast.json"
    slow.write_text(json.dumps({"workloads": [workload("one", 10, 20), workload("prompts", 100, 1, output_len=1)]}))
    fast.write_text(
        json.dumps(
            {"engine": "Fast", "workloads": [workload("prompts", 250, 2.5, output_len=1), workload("one", 10, 60)]}
        )
    )
    return slow, fast


def test_prompts_are_compared_by_input_the_rest_by_output(files):
    found = compare(read_rates(files[0]), read_rates(files[1]))
    ratios = {other.name: (other.unit, other.tokens_per_s / base.tokens_per_s) for base, other in found.pairs}
    assert ratios == {"prompts": ("in", 2.5), "one": ("out", 3.0)}


def test_an_engine_is_called_what_the_label_the_file_or_its_name_say(files):
    assert read_rates(files[0]).engine == "slow"
    assert read_rates(files[1]).engine == "Fast"
    assert read_rates(files[1], "mine").engine == "mine"


def test_files_of_something_else_are_refused(tmp_path):
    other = tmp_path / "x.json"
    other.write_text('{"workloads": [{"name": "a"}]}')
    with pytest.raises(ConfigError, match="bench workloads --output-json"):
        read_rates(other)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_rates(tmp_path / "none.json")


def test_nothing_in_common_is_an_error(files, tmp_path):
    other = tmp_path / "x.json"
    other.write_text(json.dumps({"workloads": [workload("another", 1, 1)]}))
    with pytest.raises(OctavoError, match="no workload in common"):
        compare(read_rates(files[0]), read_rates(other))


def test_the_command_prints_ratios_and_draws_bars(files, tmp_path, capsys):
    png = tmp_path / "c.png"
    assert main(["bench", "compare", *map(str, files), "--labels", "A", "B", "--png", str(png)]) == 0
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "3.00" in capsys.readouterr().out
