"""Measure what was submitted, started and ended: counters and histograms."""

from __future__ import annotations

from jobs.models import MissReason
from jobs.pages.metrics.samples import Histogram, Samples
from jobs.system.rollups.metric_totals import LIMITS, OUTCOME_NAMES, Totals, missed_name


def measure(found: Totals) -> Samples:
    """Return the samples of the totals.

    Counters without labels of owners are there from the start, with 0: Prometheus sees no rise in a
    series that begins above 0.
    """
    samples = Samples()
    samples.add("submitted", found.all["submitted"])
    samples.add("started", found.all["started"])
    for outcome in OUTCOME_NAMES:
        samples.add("outcomes", found.all[outcome], outcome)
    for reason in MissReason.values:
        samples.add("missed_spans", found.all[missed_name(reason)], reason)
    for (owner, queue), counted in found.each.items():
        samples.add("owner_submitted", counted["submitted"], owner, queue)
        samples.add("owner_started", counted["started"], owner, queue)
        for outcome in OUTCOME_NAMES:
            samples.add("owner_outcomes", counted[outcome], owner, queue, outcome)
        for of in ("wait", "run"):
            times = Histogram(LIMITS, counted.buckets(of), counted[f"{of}_seconds"])
            samples.put(f"{of}_seconds", times, owner, queue)
    return samples
