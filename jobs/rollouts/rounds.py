"""The round of rollouts: waves are released, end, and stop a failing rollout.

Every change of a rollout is made under two locks: its row, so that rounds and operators take turns,
and its advisory lock, which admissions share, so that none that began earlier ends after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Func, TextField
from django.db.models.functions import Cast

from fleet import crash_point
from jobs.core import log_events, prepared, sql
from jobs.core.apart import VALUE_ERRORS, name_spoilt
from jobs.core.errors import OptionError
from jobs.core.locks import LockClass
from jobs.core.states import FIRST as FIRST_STATES
from jobs.models import AuditEntry, EventType, Rollout, RolloutState, Run
from jobs.models.verbs import Actor
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
Queue = Callable[[Sequence[UUID]], object]
"""Queues locked runs that wait for nothing."""
_ALONE: Final = "SELECT pg_advisory_xact_lock(%s, hashtext(%s))"


def advance(queue: Queue) -> int:
    """Bring each rollout one step on: a stop, a release, or a chunk of runs that are queued.

    Return how many have changed. Repeat it until none has, and promote in between: others' due runs
    do not wait for all of a large wave. A rollout whose row cannot be read is named and left out.
    """
    open_ = Rollout.objects.exclude(state=RolloutState.ENDED)
    rollouts = open_ | Rollout.objects.exclude(due_from=None)
    ids = list(rollouts.order_by("submission_id").values_list("pk", flat=True))
    changed = 0
    for submission_id in ids:
        try:
            changed += _advance_one(submission_id, queue)
        except SPOILT as error:
            name_spoilt(logger, f"the rollout of submission {submission_id}", error)
    return changed


def examine(submission_ids: Iterable[int]) -> None:
    """Go on with open rollouts of which runs have failed: they may be stopped now.

    An error is logged, and the round looks at them.
    """
    try:
        for submission_id in set(submission_ids):
            with locked(submission_id, waits=False) as rollout:
                if rollout is not None and rollout.state in OPEN:
                    _step(rollout)
    except Exception:
        # Whatever it is, the caller's reports are recorded.
        log_events.ROLLOUT_LEFT.log(logger, exc_info=True)


def _advance_one(submission_id: int, queue: Queue) -> bool:
    with locked(submission_id, waits=False) as rollout:
        if rollout is None:
            return False
        if rollout.state != RolloutState.ENDED and _step(rollout):
            return True
        if rollout.state in STOPPED or rollout.due_from is None:
            return False
        make_due(rollout, queue)
        return True


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


def halt(submission_id: int, *, actor: Actor, reason: str) -> None:
    """Pause the rollout of a submission that is cancelled, if it has one that is not stopped."""
    try:
        with locked(submission_id) as rollout:
            if rollout is not None and rollout.state in OPEN:
                change(rollout, state=RolloutState.PAUSED, reason=reason)
                on = rollout.submission
                AuditEntry.write("pause rollout", on=on, actor=actor, reason=reason)
    except SPOILT as error:
        name_spoilt(logger, f"the rollout of submission {submission_id}", error)


def reopened(run_ids: Sequence[UUID]) -> None:
    """Update the rollouts of runs that a retry has queued again, in its transaction.

    If a retried run was an accepted failure, it counts again when it fails again. If its wave was
    never released, a rollout that has ended goes on, and the run waits for the release.
    """
    runs: Any = Run.objects.filter(id__in=run_ids)
    found = Rollout.objects.filter(submission__in=runs.values("submission"))
    # In the order in which admissions take the locks of several.
    key = Func(Cast("submission_id", TextField()), function="hashtext")
    for submission_id in found.order_by(key).values_list("pk", flat=True):
        try:
            with locked(submission_id) as rollout:
                if rollout is not None:
                    _go_on(rollout)
        except SPOILT as error:
            name_spoilt(logger, f"the rollout of submission {submission_id}", error)


def _go_on(rollout: Rollout) -> None:
    is_later_open = rollout.wave < len(rollout.waves) and counts_of(rollout)[-1][1]
    if rollout.state == RolloutState.ENDED and is_later_open:
        rollout.waves[rollout.wave].pop("asked_at", None)
        change(rollout, state=RolloutState.ROLLING)
    if rollout.state != RolloutState.ENDED:
        _step(rollout)


def renew_deadlines(rollout: Rollout) -> None:
    """Give runs whose deadline has passed while their rollout was stopped a new one."""
    if rollout.deadline_seconds is None:
        return
    moment = sql.now()
    late = Run.objects.filter(submission=rollout.pk, state__in=FIRST_STATES, attempt_count=0)
    late.filter(id__range=_ends(rollout), deadline_at__lte=moment).update(
        deadline_at=moment + timedelta(seconds=rollout.deadline_seconds)
    )


def make_due(rollout: Rollout, queue: Queue) -> None:
    """Queue a chunk of released runs; promotion does it for those that a calendar may hold.

    Likewise for those that are due later, and with deadlines.
    """
    rows = prepared.run(
        "rollouts/lock_released",
        _ends(rollout),
        {
            "submission": rollout.pk,
            "after": rollout.due_from,
            "last": rollout.released_to,
            "most": CHUNK,
        },
    )
    is_free = rollout.owner.calendar_version == 0 and rollout.deadline_seconds is None
    free = [row["id"] for row in rows if is_free and row["is_due"]]
    later = [row["id"] for row in rows if not (is_free and row["is_due"])]
    if free:
        queue(free)
    if later:
        given = {"ids": later, "deadline": rollout.deadline_seconds}
        prepared.run("rollouts/make_due", _ends(rollout), given)
    rollout.due_from = rows[-1]["id"] if len(rows) == CHUNK else None
    rollout.save(update_fields=["due_from"])
    crash_point("rollout.after_due")


def release(rollout: Rollout, *, by: str = "") -> None:
    """Release the next wave of a locked rollout."""
    number = rollout.wave + 1
    wave = rollout.waves[number - 1]
    wave |= {"released_at": sql.now().isoformat(), "released_by": by}
    # Runs of earlier waves may be still to be made due.
    due_from = rollout.due_from or UUID(int=UUID(wave["first"]).int - 1)
    change(
        rollout,
        state=RolloutState.ROLLING,
        wave=number,
        released_to=UUID(wave["last"]),
        due_from=due_from,
        next_at=None,
        reason="",
    )
    crash_point("rollout.after_release")


def counts_of(rollout: Rollout) -> list[tuple[int, bool]]:
    """Return how many runs of each released wave have failed, and whether one has not ended.

    Behind them the same of all later waves.
    """
    released = [rollout.waves[place] for place in range(rollout.wave)]
    waves = [(wave["first"], wave["last"]) for wave in released]
    if later := rollout.waves[rollout.wave :]:
        waves.append((later[0]["first"], later[-1]["last"]))
    given = {"submission": rollout.pk, **sql.columns(waves, "firsts", "lasts")}
    rows = prepared.run("rollouts/wave_counts", _ends(rollout), given)
    return [(row["failed"], row["is_open"]) for row in rows]


def ended_of(rollout: Rollout, wave: Mapping[str, Any], *, most: int) -> int:
    """Return how many runs of a wave have ended, `most` at most."""
    ends = {"first": wave["first"], "last": wave["last"]}
    given = {"submission": rollout.pk, **ends, "most": most}
    return prepared.run("rollouts/wave_ended", _ends(rollout), given)[0]["count"]


def _ends(rollout: Rollout) -> list[UUID]:
    """Return the first and the last run: all are of one day, and have its partition's plan."""
    return [UUID(rollout.waves[0]["first"]), UUID(rollout.waves[-1]["last"])]


def accept(rollout: Rollout) -> None:
    """Let the failures of a locked rollout so far no longer count; the caller saves it."""
    counts = counts_of(rollout)
    for wave, (failed, _) in zip(rollout.waves[: rollout.wave], counts, strict=False):
        ended = ended_of(rollout, wave, most=wave["size"]) if failed else 0
        wave |= {"accepted_failed": failed, "accepted_ended": ended}


def facts_of(rollout: Rollout, counts: Sequence[tuple[int, bool]]) -> Facts:
    limit = limit_of(rollout)
    return Facts(
        released=[
            _released(rollout, number, limit, *counts[number - 1])
            for number in range(1, rollout.wave + 1)
        ],
        has_open=any(is_open for _, is_open in counts),
        is_stopped=rollout.state in STOPPED,
        is_waiting=rollout.state == RolloutState.WAITING,
        limit=limit,
        between=timedelta(seconds=rollout.between_seconds) if rollout.between_seconds else None,
        needs_approval=rollout.needs_approval,
        next_at=rollout.next_at,
        now=sql.now(),
    )


def _released(
    rollout: Rollout, number: int, limit: Limit | None, failed: int, is_open: bool
) -> Released:
    wave = rollout.waves[number - 1]
    failed = max(0, failed - wave.get("accepted_failed", 0))
    accepted, ended = wave.get("accepted_ended", 0), 0
    # Counted only if the failures may be too many, and no further than until they are not.
    if limit is not None and limit.is_passed(failed=failed, ended=0, size=wave["size"]):
        most = min(wave["size"], limit.least_ended(failed) + accepted)
        ended = max(0, ended_of(rollout, wave, most=most) - accepted)
    return Released(number=number, size=wave["size"], failed=failed, ended=ended, is_open=is_open)


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
        for wave in rollout.waves[rollout.wave :]:
            wave.pop("asked_at", None)
        change(rollout, state=RolloutState.STOPPED, next_at=None)
        crash_point("rollout.after_stop")
        AuditEntry.write("stop rollout", on=rollout.submission, reason=rollout.reason)
        log_events.ROLLOUT_STOPPED.log(logger, submission=rollout.pk, reason=rollout.reason)
    elif following is Next.RELEASE:
        release(rollout)
    elif following is Next.WAIT:
        asked = rollout.waves[rollout.wave]
        if facts.needs_approval and "asked_at" not in asked:
            asked["asked_at"] = facts.now.isoformat()
            note(rollout, EventType.ROLLOUT_WAITS, wave=rollout.wave)
        change(
            rollout,
            state=RolloutState.WAITING,
            next_at=None if facts.between is None else facts.now + facts.between,
        )
    elif following is Next.END:
        # A run that was retried just now may have been held by an admission: queue it.
        change(rollout, state=RolloutState.ENDED, next_at=None, due_from=FIRST)
    elif has_noted:
        change(rollout)
    return has_noted or following is not None


def _note_waves(rollout: Rollout, counts: Sequence[tuple[int, bool]]) -> bool:
    """Note which waves have ended, and which accepted failures are none any more; say if any."""
    before = str(rollout.waves)
    for number, (failed, is_open) in enumerate(counts[: rollout.wave], 1):
        wave = rollout.waves[number - 1]
        if not is_open and "ended_at" not in wave:
            wave["ended_at"] = sql.now().isoformat()
            note(rollout, EventType.WAVE_ENDED, wave=number)
        # A run that is retried is no accepted failure: it may fail again.
        if (gone := wave.get("accepted_failed", 0) - failed) > 0:
            wave |= {"accepted_failed": failed, "accepted_ended": wave["accepted_ended"] - gone}
    return before != str(rollout.waves)
