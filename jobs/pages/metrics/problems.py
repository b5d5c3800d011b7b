"""Measure the verdict: what is wrong with the installation now."""

from __future__ import annotations

from jobs.pages.metrics.samples import Samples
from jobs.system.state import system_state
from jobs.system.verdict.operator import Operator
from jobs.system.verdict.reading import installation
from jobs.system.verdict.rules import problems_of


def measure(*, is_redis_away: bool) -> Samples:
    """Return a sample for each problem; none if all is well."""
    samples = Samples()
    facts = installation(Operator(), system=system_state(), is_redis_away=is_redis_away)
    for problem in problems_of(facts):
        samples.add("problem", 1, problem.code, problem.level)
    return samples
