"""A stall is the lack of finished steps, not of messages."""

from __future__ import annotations

from octavo.fault.watchdog import StallWatch, Verdict


def watch(stall_timeout_s=10.0, silence_s=2.0):
    observed = StallWatch(stall_timeout_s, silence_s=silence_s)
    observed.restart(100.0)
    return observed


def test_an_engine_that_finishes_steps_is_fine_for_ever():
    observed = watch()
    for second in range(100):
        observed.hear(num_steps=second, now_s=100.0 + second)
        assert observed.judge(100.5 + second) is Verdict.FINE


def test_answers_without_finished_steps_do_not_hide_a_stall():
    observed = watch()
    for second in range(10):
        observed.hear(num_steps=1, now_s=100.0 + second)
        assert observed.judge(100.0 + second) is Verdict.FINE
    assert observed.judge(110.0) is Verdict.STALLED
    assert observed.stalled_for_s(110.0) == 10.0


def test_silence_is_noticed_before_a_stall():
    observed = watch()
    verdicts = [observed.judge(100.0 + second) for second in (1.9, 2.0, 9.9, 10.0)]
    assert verdicts == [Verdict.FINE, Verdict.SILENT, Verdict.SILENT, Verdict.STALLED]


def test_an_answer_ends_the_silence():
    observed = watch()
    observed.hear(num_steps=0, now_s=105.0)
    assert observed.judge(106.0) is Verdict.FINE


def test_measuring_begins_anew_with_new_work():
    observed = watch()
    observed.hear(num_steps=7, now_s=101.0)
    observed.restart(500.0)
    assert observed.judge(501.0) is Verdict.FINE
    observed.hear(num_steps=7, now_s=509.0)
    assert observed.judge(510.0) is Verdict.STALLED
