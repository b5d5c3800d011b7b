"""A plan as lines for a terminal, and as an object for JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from jobs.forecast.replay.plan import Plan


def as_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON has it; times in ISO 8601."""
    found = asdict(plan)
    return {**found, "start": plan.start.isoformat(), "end": plan.end.isoformat()}


def as_lines(plan: Plan) -> Iterator[str]:
    """Yield a plan as lines."""
    source = "attempts" if plan.is_from_rows else "statistics (attempts were removed)"
    yield f"{plan.start:%Y-%m-%d %H:%M} to {plan.end:%Y-%m-%d %H:%M %Z}, queue {plan.queue}"
    yield f"{plan.runs:,} runs from {source}; {plan.recorded_slots} slots were recorded"
    if plan.each > 1:
        yield f"A sample: each replayed run stands for {plan.each}. Short waits are less exact."
    yield f"Replayed with {plan.slots} slots; a start costs {plan.start_cost_seconds * 1000:.1f} ms"
    yield ""
    head = f"{'owner':20} {'starts':>9} {'p50':>9} {'p95':>9} {'longest':>9}"
    yield f"{head}   recorded p50, p95, longest"
    recorded = {one.owner: one for one in plan.recorded}
    for one in plan.replayed:
        before = recorded.get(one.owner)
        was = "" if before is None else ", ".join(map(_s, (before.p50, before.p95, before.longest)))
        yield (
            f"{one.owner:20} {one.started:9,} {_s(one.p50):>9} {_s(one.p95):>9} "
            f"{_s(one.longest):>9}   {was}"
        )
        for count, words in (
            (one.missed, "missed their window and waited for the next one"),
            (one.never, "found no window, or no slot"),
            (one.expired, "expired before they started"),
        ):
            if count:
                yield f"{'':20} {count:9,} {words}"
    yield ""
    if plan.jain is not None:
        yield f"Jain's index of received by entitled share: {plan.jain:.3f}"
    yield f"The last run ends {_s(plan.ends_after_seconds)} after the start of the span"
    if plan.needed is not None and plan.needed.slots is not None:
        yield f"The objective needs {plan.needed.slots:,} slots"
    elif plan.needed is not None:
        names = ", ".join(plan.needed.unmet)
        yield f"No number of slots is enough for {names}: a limit or a window keeps them"


def _s(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:,.2f} s"
