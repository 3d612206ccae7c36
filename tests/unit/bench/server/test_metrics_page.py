"""Numbers from a page of metrics."""

from __future__ import annotations

from octavo.bench.server.metrics_page import sum_of


def test_samples_of_one_metric_are_added_up():
    text = '# TYPE a gauge\na{x="1"} 2.0\na{x="2"} 3\nab 7\n'
    assert sum_of(text, "a") == 5
    assert sum_of(text, "ab") == 7
    assert sum_of(text, "abc") == 0
