"""What pages and sentences say of a rollout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from jobs.core.phrases import Phrase, joined, phrase
from jobs.core.states import ENDED, State
from jobs.models import Rollout, RolloutState, Run
from jobs.rollouts import rounds
from jobs.rollouts.telling import states_of

MOST: Final = 100
"""Most rollouts that are read because they ask for a decision."""


class StepState(StrEnum):
    """What has become of a wave."""

    ENDED = "ended"
    OPEN = "open"
    PAUSED = "paused"
    """Open, and its runs that have not started wait until the rollout is resumed."""
    OVER = "over"
    """Too many of its runs have failed: the rollout is stopped."""
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One wave of a rollout, as a page shows it. `counts` are its runs by state."""

    number: int
    size: int
    state: StepState = StepState.HELD
    counts: Mapping[State, int] = field(default_factory=dict)
    failed: int = 0
    """Those that count against the limit; `accepted` others do not."""
    accepted: int = 0
    allowed: int | None = None
    """How many failures do not stop it now; None: any number."""
    released_at: datetime | None = None
    released_by: str = ""
    ended_at: datetime | None = None


def counts_by_state() -> dict[str, int]:
    """Count the rollouts that have not ended, by state; `needs_approval` is a state of its own."""
    rows = Rollout.objects.exclude(state=RolloutState.ENDED).order_by()
    counts = dict.fromkeys([*RolloutState.values[:-1], "needs_approval"], 0)
    counted = rows.values_list("state", "needs_approval").annotate(count=Count("*"))
    for state, asks, count in counted:
        counts["needs_approval" if asks and state == RolloutState.WAITING else state] += count
    return counts


def rollouts_to_decide(rollouts: QuerySet[Rollout]) -> list[Rollout]:
    """Return those of these that are stopped, and those that wait for an approval; oldest first."""
    waits = Q(state=RolloutState.WAITING, needs_approval=True)
    asked = rollouts.filter(waits | Q(state=RolloutState.STOPPED)).order_by("state", "changed_at")
    return list(asked.select_related("submission")[:MOST])


def steps_of(rollout: Rollout) -> list[Step]:
    """Return the waves of a rollout, with the counts of those that are released."""
    facts = rounds.facts_of(rollout, rounds.counts_of(rollout))
    limit = rounds.limit_of(rollout)
    over = facts.over_limit if rollout.state == RolloutState.STOPPED else None
    going = StepState.PAUSED if rollout.state in rounds.STOPPED else StepState.OPEN
    steps = []
    for wave, found in zip(rollout.waves, facts.released, strict=False):
        state = going if found.is_open else StepState.ENDED
        counts = states_of(rollout, found.number)
        ended = sum(count for one, count in counts.items() if one in ENDED)
        ended -= wave.get("accepted_ended", 0)
        steps.append(
            Step(
                number=found.number,
                size=found.size,
                state=StepState.OVER if found == over else state,
                counts=counts,
                failed=found.failed,
                accepted=counts.get(State.FAILED, 0) - found.failed,
                allowed=None if limit is None else limit.allowed(ended=ended, size=found.size),
                released_at=_moment(wave.get("released_at")),
                released_by=wave.get("released_by", ""),
                ended_at=_moment(wave.get("ended_at")),
            )
        )
    has_ended = rollout.state == RolloutState.ENDED
    for number, wave in enumerate(rollout.waves[rollout.wave :], rollout.wave + 1):
        # One that was never released: its runs are cancelled.
        state = StepState.ENDED if has_ended else StepState.HELD
        counts = states_of(rollout, number) if has_ended else {}
        steps.append(Step(number=number, size=wave["size"], state=state, counts=counts))
    return steps


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def why_not_released(run: Run) -> Phrase | None:
    """Say why the wave of a run is not released, or is stopped; None if it is on its way."""
    rollout = Rollout.objects.filter(pk=run.submission_id).first()
    if rollout is None:
        return None
    numbered = enumerate(rollout.waves, 1)
    number = next((one for one, wave in numbered if run.id <= UUID(wave["last"])), None)
    if number is None:
        return None
    if rollout.state in rounds.STOPPED or number > rollout.wave:
        place = phrase("Wave %(number)s of %(count)s", number=number, count=len(rollout.waves))
        return joined([place, why_it_waits(rollout, wave=number)], ": ")
    return None


def why_it_waits(rollout: Rollout, *, wave: int | None = None) -> Phrase:
    """Say what the next wave of a rollout, or one of the later ones, waits for."""
    if rollout.state == RolloutState.STOPPED:
        return phrase(
            "the rollout is stopped (%(reason)s) until it is resumed.", reason=rollout.reason
        )
    if rollout.state == RolloutState.PAUSED:
        reason = f" ({rollout.reason})" if rollout.reason else ""
        return phrase("the rollout is paused%(reason)s until it is resumed.", reason=reason)
    before = (wave or rollout.wave + 1) - 1
    if before > rollout.wave or rollout.state == RolloutState.ROLLING:
        if rollout.needs_approval:
            return phrase("waits until the waves before it have ended and somebody approves it.")
        return phrase("waits until the waves before it have ended.")
    if rollout.needs_approval:
        return phrase("waits until somebody approves it.")
    at = "" if rollout.next_at is None else f"{rollout.next_at:%Y-%m-%d %H:%M:%S %Z}"
    return phrase("is released %(at)s.", at=at)
