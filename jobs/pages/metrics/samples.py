"""The samples of one scrape: numbers by family and labels. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from jobs.pages.metrics.families import BY_NAME, FAMILIES, Family, Kind


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of buckets with these upper limits; the last bucket has none."""

    limits: Sequence[float]
    counts: Sequence[float]
    sum: float

    def as_prometheus(self) -> list[tuple[str, float]]:
        """Return each limit with the number of values up to it."""
        names = [*(f"{limit:.15g}" for limit in self.limits), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class Samples:
    """Samples that are added up where their labels are the same."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, ...], Any]] = {}

    def add(self, family: str, value: float, *labels: str) -> None:
        """Add a value to the sample with these labels."""
        at = self._of(family, labels)
        at[labels] = at.get(labels, 0.0) + value

    def add_largest(self, family: str, value: float, *labels: str) -> None:
        """Make a value that of the sample with these labels, unless that is larger."""
        at = self._of(family, labels)
        at[labels] = max(at.get(labels, 0.0), value)

    def put(self, family: str, value: Histogram, *labels: str) -> None:
        """Set the histogram with these labels."""
        self._of(family, labels)[labels] = value

    def update(self, others: Samples) -> None:
        """Take over the samples of other families."""
        self._found |= others._found

    def collect(self) -> Iterator[Any]:
        """Yield the families that have samples, as Prometheus' client writes them."""
        for family in FAMILIES:
            if samples := self._found.get(family.name):
                yield _written(family, samples)

    def _of(self, family: str, labels: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
        if len(BY_NAME[family].labels) != len(labels):
            raise ValueError(f"{family} has the labels {BY_NAME[family].labels}, not {labels}")
        return self._found.setdefault(family, {})


def _written(family: Family, samples: dict[tuple[str, ...], Any]) -> Any:
    written = family.kind.value(family.full_name, family.help, labels=family.labels)
    for labels, value in samples.items():
        if family.kind is Kind.HISTOGRAM:
            written.add_metric(labels, value.as_prometheus(), sum_value=value.sum)
        else:
            written.add_metric(labels, value)
    return written
