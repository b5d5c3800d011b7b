"""Measure the wait objectives of owners."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.core.conf import setting
from jobs.pages.metrics.samples import Samples
from jobs.system.rollups.objectives import SPANS, Objective


def measure(found: Sequence[Objective] | None) -> Samples:
    """Return the samples of the objectives that burn fastest, as many as metrics name owners."""
    samples = Samples()
    ranked = sorted(found or (), key=lambda one: (-_worst(one), one.owner.slug))
    for one in ranked[: setting("METRICS_NAMES")]:
        name = one.owner.slug
        samples.add("owner_objective_seconds", one.seconds, name)
        samples.add("owner_objective_part", one.percent / 100, name)
        for span, label in SPANS.items():
            rate = one.burn(span)
            if rate is not None:
                samples.add("owner_objective_burn_rate", rate, name, label)
    return samples


def _worst(one: Objective) -> float:
    return max(one.burn(span) or 0.0 for span in SPANS)
