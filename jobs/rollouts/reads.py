"""What pages and sentences say of a rollout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from jobs.core.phrases import Phrase, joined, phrase
from jobs.core.states import ENDED, State
from jobs.models import Rollout, RolloutState, Run
from jobs.rollouts import rounds
from jobs.rollouts.telling import states_of


@dataclass(frozen=True, slots=True)
class Step:
    """One wave of a rollout, as a page shows it."""

    number: int
    size: int
    released_at: datetime | None
    released_by: str
    ended_at: datetime | None
    failed: int
    ended: int
    is_current: bool


def rollout_to_decide(rollouts: QuerySet[Rollout]) -> Rollout | None:
    """Return the oldest of these that is stopped, else the oldest that waits for an approval."""
    waits = Q(state=RolloutState.WAITING, needs_approval=True)
    # In alphabetical order a stopped one comes first.
    asked = rollouts.filter(waits | Q(state=RolloutState.STOPPED)).order_by("state", "changed_at")
    return asked.select_related("submission").first()


def steps_of(rollout: Rollout) -> list[Step]:
    """Return the waves of a rollout, with the counts of those that are released."""
    return list(_steps(rollout))


def _steps(rollout: Rollout) -> Iterator[Step]:
    for number, wave in enumerate(rollout.waves, 1):
        counts = states_of(rollout, number) if number <= rollout.wave else {}
        yield Step(
            number=number,
            size=wave["size"],
            released_at=_moment(wave.get("released_at")),
            released_by=wave.get("released_by", ""),
            ended_at=_moment(wave.get("ended_at")),
            failed=counts.get(State.FAILED, 0),
            ended=sum(count for state, count in counts.items() if state in ENDED),
            is_current=number == rollout.wave,
        )


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
