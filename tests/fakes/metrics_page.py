"""/metrics as a test wants to read it: parsed by Prometheus' own parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from octavo.obs.exposition import MetricsPage


class ParsedPage:
    """Samples by name and labels; types by family."""

    def __init__(self, text: str) -> None:
        self.types: dict[str, str] = {}
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(text):
            self.types[family.name] = family.type
            for sample in family.samples:
                self.samples[sample.name, frozenset(sample.labels.items())] = sample.value

    def value(self, name: str, **labels: str) -> float:
        """The one sample of this name that has these labels, whatever others it has."""
        wanted = set(labels.items())
        found = [value for (its_name, its), value in self.samples.items() if its_name == name and wanted <= its]
        assert len(found) == 1, (name, labels, found)
        return found[0]

    def labels(self, name: str) -> set[str]:
        """Label names on samples of this name."""
        return {label for its_name, its in self.samples for label, _ in its if its_name == name}

    def bounds(self, name: str) -> list[str]:
        """Bucket bounds of a histogram, as they are written."""
        found = {dict(its)["le"] for its_name, its in self.samples if its_name == f"{name}_bucket"}
        return sorted(found, key=float)


def parse(page: MetricsPage, *stats) -> ParsedPage:
    return ParsedPage(page.render(stats).decode())
