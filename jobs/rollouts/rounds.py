"""The round of rollouts: waves are released, end, and stop a failing rollout.

Every change of a rollout is made under two locks: its row, so that rounds and operators take turns,
and its advisory lock, which admissions share, so that none that began earlier ends after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from fleet import crash_point
from jobs.core import log_events, sql
from jobs.core.apart import VALUE_ERRORS, name_spoilt
from jobs.core.errors import OptionError
from jobs.core.locks import LockClass
from jobs.models import AuditEntry, EventType, Rollout, RolloutState
from jobs.rollouts.deciding import Facts, Next, Released, decide
from jobs.rollouts.telling import note
from jobs.rollouts.waves import Limit, limit_from

logger = logging.getLogger(__name__)

CHUNK: Final = 1_000
FIRST: Final = UUID(int=0)
OPEN: Final = (RolloutState.ROLLING, RolloutState.WAITING)
STOPPED: Final = (RolloutState.STOPPED, RolloutState.PAUSED)
SPOILT: Final = (*VALUE_ERRORS, LookupError, TypeError, OptionError)
"""Errors of a row in which raw SQL has written what no rollout has."""
_ALONE: Final = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"


def advance() -> int:
    """Bring each rollout as far as it can go now; return how many have changed.

    One whose row cannot be read is named and left out: promotion goes on for all others.
    """
    open_ = Rollout.objects.exclude(state=RolloutState.ENDED)
    rollouts = open_ | Rollout.objects.exclude(due_from=None)
    ids = list(rollouts.order_by("submission_id").values_list("pk", flat=True))
    changed = 0
    for submission_id in ids:
        try:
            changed += advance_one(submission_id)
        except SPOILT as error:
            name_spoilt(logger, f"the rollout of submission {submission_id}", error)
    return changed


def examine(submission_ids: Iterable[int]) -> None:
    """Go on with the rollouts of submissions of which runs have failed: they may be stopped now.

    An error is logged, and the round looks at them.
    """
    try:
        found = Rollout.objects.filter(pk__in=set(submission_ids), state__in=OPEN)
        for submission_id in found.values_list("pk", flat=True):
            advance_one(submission_id)
    except Exception:
        # Whatever it is, the caller's reports are recorded.
        log_events.ROLLOUT_LEFT.log(logger, exc_info=True)


def advance_one(submission_id: int) -> bool:
    """Go on with one rollout; say whether it has changed. Harmless for one that has ended."""
    is_changed = False
    while True:
        with locked(submission_id, waits=False) as rollout:
            if rollout is None:
                return is_changed
            if rollout.state != RolloutState.ENDED and _step(rollout):
                pass
            elif rollout.state not in STOPPED and rollout.due_from is not None:
                make_due(rollout)
            else:
                return is_changed
        is_changed = True


@contextmanager
def locked(submission_id: int, *, waits: bool = True) -> Iterator[Rollout | None]:
    """Yield a rollout with its row locked, in a transaction; None if there is none.

    With `waits` false also None if another transaction has it.
    """
    with transaction.atomic():
        rows: Any = Rollout.objects.filter(pk=submission_id)
        yield rows.select_for_update(of=("self",), skip_locked=not waits).first()


def change(rollout: Rollout, **values: Any) -> None:
    """Write a locked rollout; admissions that begin after the commit see it."""
    sql.query(_ALONE, [LockClass.ROLLOUT, str(rollout.pk)])
    for name, value in {**values, "changed_at": sql.now()}.items():
        setattr(rollout, name, value)
    rollout.save()


def make_due(rollout: Rollout) -> None:
    """Make a chunk of released runs due."""
    ids = sql.run(
        "rollouts/make_due",
        {
            "submission": rollout.pk,
            "after": rollout.due_from,
            "last": rollout.released_to,
            "deadline": rollout.deadline_seconds,
            "most": CHUNK,
        },
    )
    rollout.due_from = max(row["id"] for row in ids) if len(ids) == CHUNK else None
    rollout.save(update_fields=["due_from"])
    crash_point("rollout.after_due")


def release(rollout: Rollout, *, by: str = "") -> None:
    """Release the next wave of a locked rollout."""
    number = rollout.wave + 1
    wave = rollout.waves[number - 1]
    wave |= {"released_at": sql.now().isoformat(), "released_by": by}
    change(
        rollout,
        state=RolloutState.ROLLING,
        wave=number,
        released_to=UUID(wave["last"]),
        due_from=UUID(int=UUID(wave["first"]).int - 1),
        next_at=None,
        reason="",
    )
    crash_point("rollout.after_release")


def counts_of(rollout: Rollout) -> list[tuple[int, int]]:
    """Return how many runs of each released wave have failed, and how many have not ended.

    Behind them the same of all later waves. Of waves without failures the second is 0 or 1.
    """
    released = [rollout.waves[place] for place in range(rollout.wave)]
    waves = [(wave["first"], wave["last"]) for wave in released]
    if later := rollout.waves[rollout.wave :]:
        waves.append((later[0]["first"], later[-1]["last"]))
    given = {"submission": rollout.pk, **sql.columns(waves, "firsts", "lasts")}
    return [(row["failed"], row["open"]) for row in sql.run("rollouts/wave_counts", given)]


def accept(rollout: Rollout) -> None:
    """Let the failures of a locked rollout so far no longer count; the caller saves it."""
    for wave, (failed, unended) in zip(rollout.waves, counts_of(rollout), strict=False):
        ended = wave["size"] - unended if failed else 0
        wave |= {"accepted_failed": failed, "accepted_ended": ended}


def facts_of(rollout: Rollout, counts: Sequence[tuple[int, int]]) -> Facts:
    return Facts(
        released=[
            Released(
                number=number,
                size=wave["size"],
                failed=max(0, failed - wave.get("accepted_failed", 0)),
                ended=max(0, wave["size"] - unended - wave.get("accepted_ended", 0)),
                is_open=unended > 0,
            )
            for number, (wave, (failed, unended)) in enumerate(
                zip(rollout.waves[: rollout.wave], counts, strict=False), 1
            )
        ],
        has_open=any(unended for _failed, unended in counts),
        is_stopped=rollout.state in STOPPED,
        is_waiting=rollout.state == RolloutState.WAITING,
        limit=limit_of(rollout),
        between=timedelta(seconds=rollout.between_seconds) if rollout.between_seconds else None,
        needs_approval=rollout.needs_approval,
        next_at=rollout.next_at,
        now=sql.now(),
    )


def limit_of(rollout: Rollout) -> Limit | None:
    """Return the limit of failures of a rollout's waves; None: it never stops by itself."""
    given = limit_from(rollout.stop_at)
    return None if given is None else Limit.read(given)


def _step(rollout: Rollout) -> bool:
    """Do what is next, if anything; say whether the rollout has changed."""
    counts = counts_of(rollout)
    has_noted = _note_waves(rollout, counts)
    facts = facts_of(rollout, counts)
    following = decide(facts)
    if following is Next.STOP and (over := facts.over_limit):
        rollout.reason = (
            f"{over.failed} of {over.ended} ended runs of wave {over.number} have failed"
        )
        note(rollout, EventType.ROLLOUT_STOPPED, wave=over.number)
        change(rollout, state=RolloutState.STOPPED, next_at=None)
        crash_point("rollout.after_stop")
        AuditEntry.write("stop rollout", on=rollout.submission, reason=rollout.reason)
        log_events.ROLLOUT_STOPPED.log(logger, submission=rollout.pk, reason=rollout.reason)
    elif following is Next.RELEASE:
        release(rollout)
    elif following is Next.WAIT:
        if facts.needs_approval:
            note(rollout, EventType.ROLLOUT_WAITS, wave=rollout.wave)
        change(
            rollout,
            state=RolloutState.WAITING,
            next_at=None if facts.between is None else facts.now + facts.between,
        )
    elif following is Next.END:
        change(rollout, state=RolloutState.ENDED, next_at=None)
    elif has_noted:
        change(rollout)
    return has_noted or following is not None


def _note_waves(rollout: Rollout, counts: Sequence[tuple[int, int]]) -> bool:
    """Note which waves have ended, and which accepted failures are none any more; say if any."""
    before = str(rollout.waves)
    for number, (failed, unended) in enumerate(counts[: rollout.wave], 1):
        wave = rollout.waves[number - 1]
        if not unended and "ended_at" not in wave:
            wave["ended_at"] = sql.now().isoformat()
            note(rollout, EventType.WAVE_ENDED, wave=number)
        # A run that is retried is no accepted failure: it may fail again.
        if (gone := wave.get("accepted_failed", 0) - failed) > 0:
            wave |= {"accepted_failed": failed, "accepted_ended": wave["accepted_ended"] - gone}
    return before != str(rollout.waves)
