"""Numbers from a page of metrics (Prometheus' text format).

Owns: reading them.   Does not own: fetching the page.
"""

from __future__ import annotations


def sum_of(text: str, name: str) -> float:
    """The samples of one name, added up; 0 for none."""
    return sum(
        float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith((name + "{", name + " "))
    )
