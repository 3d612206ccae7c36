"""vLLM's labels and keys: scripts grep the one and read the other."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from octavo.base.errors import ConfigError, OctavoError
from octavo.bench.serve import result_file
from octavo.bench.serve.arrivals import ArrivalOptions, Ramp
from octavo.bench.serve.metrics import summarize
from octavo.bench.serve.progress import ProgressLine
from octavo.bench.serve.record import RequestRecord
from octavo.bench.serve.report import ClientCost, ServeReport
from octavo.bench.serve.result_file import RunLabel, choose_path, parse_pairs, write_plots, write_result
from octavo.bench.serve.speculation import SpeculationCounters


def make_records(num_failed=1):
    done = RequestRecord(
        index=0,
        num_prompt_tokens=10,
        start_s=5.0,
        ttft_s=0.1,
        itls_s=[0.02, 0.04],
        latency_s=0.16,
        num_output_tokens=3,
        text="abc",
        is_success=True,
    )
    failed = [RequestRecord(index=at + 1, num_prompt_tokens=9, error=f"no {at}") for at in range(num_failed)]
    return [done, *failed]


def make_report(records=None, **fields):
    records = make_records() if records is None else records
    metrics = summarize(records, duration_s=2.0, goodput_limits_s={"ttft": 0.2}, count_tokens=lambda _: 0)
    return ServeReport(metrics=metrics, records=records, cost=ClientCost(cpu_s=0.001, num_chunks=40), **fields)


def make_label(**fields):
    options = {"backend": "openai", "label": None, "model": "org/name", "tokenizer": "tok", "num_prompts": 2}
    options |= {"arrivals": ArrivalOptions(), "max_concurrency": None, "metadata": {"tp": "1"}}
    return RunLabel(started=datetime(2026, 1, 2, 3, 4, 5), **(options | fields))


BLOCK = """\
Errors of failed requests (at most 10 are shown):
Error 0: no 0
============ Serving Benchmark Result ============
Successful requests:                     1
Failed requests:                         1
Maximum request concurrency:             8
Request rate configured (RPS):           4.00
Benchmark duration (s):                  2.00
Total input tokens:                      10
Total generated tokens:                  3
Request throughput (req/s):              0.50
Request goodput (req/s):                 0.50
Output token throughput (tok/s):         1.50
Peak output token throughput (tok/s):    3.00
Peak concurrent requests:                1.00
Total token throughput (tok/s):          6.50
---------------Time to First Token----------------
Mean TTFT (ms):                          100.00
Median TTFT (ms):                        100.00
P50 TTFT (ms):                           100.00
P99.9 TTFT (ms):                         100.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          30.00
Median TPOT (ms):                        30.00
P50 TPOT (ms):                           30.00
P99.9 TPOT (ms):                         30.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           30.00
Median ITL (ms):                         30.00
P50 ITL (ms):                            30.00
P99.9 ITL (ms):                          39.98
----------------End-to-end Latency----------------
Mean E2EL (ms):                          160.00
Median E2EL (ms):                        160.00
P50 E2EL (ms):                           160.00
P99.9 E2EL (ms):                         160.00
---------------Speculative Decoding---------------
Acceptance rate (%):                     50.00
Acceptance length:                       2.00
Drafts:                                  10
Draft tokens:                            20
Accepted tokens:                         10
Per-position acceptance (%):
  Position 0:                            100.00
------------------Load Generator------------------
Client CPU time (s):                     0.00
Client CPU per chunk (us):               25.00
=================================================="""


def test_the_console_block_has_vllms_labels():
    report = make_report(
        has_goodput=True,
        request_rate=4.0,
        max_concurrency=8,
        shown_metrics=("ttft", "tpot", "itl", "e2el"),
        percentages=(50.0, 99.9),
        speculation=SpeculationCounters(
            num_drafts=10, num_draft_tokens=20, num_accepted_tokens=10, accepted_by_position={0: 10}
        ),
    )
    assert [line.rstrip() for line in str(report).splitlines()] == BLOCK.splitlines()


def test_what_was_not_asked_for_is_not_in_the_block():
    text = str(make_report(make_records(0)))
    for label in ("goodput", "concurrency:", "rate configured", "E2EL", "Speculative", "Error", "Interrupted"):
        assert label not in text


def test_no_more_than_ten_errors_are_shown():
    text = str(make_report(make_records(12)))
    assert "Error 9: no 9" in text
    assert "Error 10" not in text


def test_an_interrupted_run_says_so():
    report = make_report(num_unfinished=3)
    assert "Interrupted requests:                    3" in str(report)
    assert report.as_json()["interrupted"] is True


def test_json_has_vllms_keys():
    found = make_report(has_goodput=True, percentages=(99.0, 99.9)).as_json()
    keys = "duration completed failed total_input_tokens total_output_tokens request_throughput request_goodput"
    keys += (
        " output_throughput total_token_throughput input_lens output_lens ttfts itls latencies start_times queue_times"
    )
    keys += " generated_texts errors max_output_tokens_per_s max_concurrent_requests client_cpu_seconds"
    keys += " client_cpu_us_per_chunk"
    keys += "".join(
        f" {what}_{name}_ms" for what in ("mean", "median", "std", "p99", "p99.9") for name in ("ttft", "itl")
    )
    assert set(keys.split()) <= set(found)
    assert (found["input_lens"], found["output_lens"], found["errors"]) == ([10, 9], [3, 0], ["", "no 0"])
    assert (found["ttfts"], found["itls"], found["generated_texts"]) == ([0.1, 0.0], [[0.02, 0.04], []], ["abc", ""])
    assert found["mean_itl_ms"] == pytest.approx(30)
    assert make_report().as_json()["request_goodput"] is None


def test_speculation_keys_are_there_when_the_server_speculates():
    counters = SpeculationCounters(num_drafts=2, num_draft_tokens=4, num_accepted_tokens=1, accepted_by_position={0: 1})
    found = make_report(speculation=counters).as_json()
    assert found["spec_decode_acceptance_rate"] == 25
    assert found["spec_decode_acceptance_length"] == 1.5
    assert found["spec_decode_per_position_acceptance_rates"] == [0.5]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "openai-infqps-name-20260102-030405.json"),
        (
            {"label": "a", "max_concurrency": 8, "arrivals": ArrivalOptions(request_rate=2.0)},
            "a-2.0qps-concurrency8-name-20260102-030405.json",
        ),
        (
            {"arrivals": ArrivalOptions(ramp=Ramp("linear", 1, 4))},
            "openai-ramp-up-linear-1qps-4qps-name-20260102-030405.json",
        ),
    ],
)
def test_files_are_named_after_the_run(fields, name):
    assert make_label(**fields).file_name() == name


def test_a_result_without_details_has_no_lists_of_chunks(tmp_path):
    path = choose_path(make_label(), str(tmp_path / "new" / "folder"), "r.json")
    write_result(path, make_label(), make_report(), is_detailed=False, appends=False)
    found = json.loads(path.read_text())
    assert (found["date"], found["backend"], found["model_id"], found["tokenizer_id"]) == (
        "20260102-030405",
        "openai",
        "org/name",
        "tok",
    )
    assert (found["request_rate"], found["tp"], found["completed"]) == ("inf", "1", 1)
    assert "itls" not in found
    assert "generated_texts" not in found


def test_a_result_with_details_has_them_and_a_ramp_is_named(tmp_path):
    path = tmp_path / "r.json"
    label = make_label(arrivals=ArrivalOptions(ramp=Ramp("linear", 1, 4)))
    write_result(path, label, make_report(), is_detailed=True, appends=False)
    found = json.loads(path.read_text())
    assert found["itls"] == [[0.02, 0.04], []]
    assert (found["ramp_up_strategy"], found["ramp_up_end_rps"]) == ("linear", 4)


def test_appended_results_are_a_line_each(tmp_path):
    path = tmp_path / "r.json"
    for _ in range(2):
        write_result(path, make_label(), make_report(), is_detailed=False, appends=True)
    assert [json.loads(line)["completed"] for line in path.read_text().split("\n")] == [1, 1]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OctavoError, match="--result-dir"):
        choose_path(make_label(), str(tmp_path / "file" / "sub"), None)
    with pytest.raises(OctavoError, match="cannot be written"):
        write_result(tmp_path, make_label(), make_report(), is_detailed=False, appends=False)


def test_plots_lie_beside_the_result(tmp_path):
    told = write_plots(tmp_path / "r.json", make_label(), make_report(), (0.025, 0.05))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.timeline.html", "r.timeline.png"]
    assert len(told) == 2


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(result_file, "has_matplotlib", lambda: False)
    told = write_plots(tmp_path / "r.json", make_label(), make_report(), (0.025, 0.05))
    assert [path.name for path in tmp_path.iterdir()] == ["r.timeline.html"]
    assert "octavo[bench]" in told[-1]


def test_without_a_success_no_plot_is_written(tmp_path):
    (line,) = write_plots(tmp_path / "r.json", make_label(), make_report(make_records()[1:]), (0.025, 0.05))
    assert "no request succeeded" in line
    assert not list(tmp_path.iterdir())


def test_pairs_are_read():
    assert parse_pairs("--metadata", ["a=1", " b = c=d"]) == {"a": "1", "b": "c=d"}
    for wrong in ("a", "=b"):
        with pytest.raises(ConfigError, match="--metadata"):
            parse_pairs("--metadata", [wrong])


def test_progress_is_silent_where_there_is_no_terminal(capsys):
    with ProgressLine(2, is_shown=True) as progress:
        for record in make_records():
            progress.on_finished(record)
    assert capsys.readouterr() == ("", "")
