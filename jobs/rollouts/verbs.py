"""What operators do with a rollout: pause, continue, release a wave early, change its sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from jobs.core.errors import ActionRefused, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.models import AuditEntry, Rollout, RolloutState, Run, Submission
from jobs.models.token import identities
from jobs.models.verbs import Actor
from jobs.rollouts import rounds
from jobs.rollouts.making import waves_stored
from jobs.rollouts.waves import counts_of as sizes_of
from jobs.rollouts.waves import refuse_sizes

_RESIZE: Final = "change waves"
"""The action in the audit."""


def pause(submission: Submission, *, actor: Actor = None, reason: str = "") -> Rollout:
    """Let nothing more of a rollout start; running runs end. Raises ActionRefused."""
    with _changing(submission, rounds.OPEN, reason) as rollout:
        # `next_at` stays: after a resume the next wave is released at that time.
        rounds.change(rollout, state=RolloutState.PAUSED, reason=reason)
        AuditEntry.write("pause rollout", on=submission, actor=actor, reason=reason)
    return rollout


def resume(submission: Submission, *, actor: Actor = None, reason: str = "") -> Rollout:
    """Continue a stopped or paused rollout; return it.

    Its failed runs are accepted: those that fail later count against the limit. Raises
    ActionRefused.
    """
    with _changing(submission, rounds.STOPPED, reason) as rollout:
        rounds.accept(rollout)
        rounds.renew_deadlines(rollout)
        state = RolloutState.WAITING if rollout.next_at else RolloutState.ROLLING
        rounds.change(rollout, state=state, reason="", due_from=rounds.FIRST)
        AuditEntry.write("resume rollout", on=submission, actor=actor, reason=reason)
    return rollout


def release(
    submission: Submission, *, wave: str = "", actor: Actor = None, reason: str = ""
) -> Rollout:
    """Release the next wave of a rollout now, as an approval or before its time; return it.

    `wave` is the one that is meant, as `named` has it: another one is not released. Raises
    ActionRefused if there is none, if the rollout is stopped, and, where waves need an approval,
    while none is asked for, and for those who submitted it or cut its waves anew, makers of the
    token that did, and other tokens of theirs.
    """
    with _changing(submission, rounds.OPEN, reason) as rollout:
        if rollout.wave == len(rollout.waves):
            raise ActionRefused("Every wave of this rollout is released.", "state_conflict")
        # guard: a repeated approval releases nothing more
        if rollout.needs_approval and rollout.state != RolloutState.WAITING:
            raise ActionRefused("No wave of this rollout waits for an approval.", "state_conflict")
        following = named(rollout)
        # guard: who has seen a wave releases that one
        if wave and wave not in (following, following.partition("/")[0]):
            raise ActionRefused(f"The next wave is {following}, not {wave}.", "state_conflict")
        if rollout.needs_approval and _has_asked(rollout, actor):
            raise ActionRefused(
                "Four eyes: who has submitted a rollout, or changed its waves, does not approve"
                " them.",
                "four_eyes",
            )
        who = actor.get_username() if actor is not None else ""
        rounds.release(rollout, by=who)
        AuditEntry.write(
            "release wave", on=submission, actor=actor, reason=reason, wave=rollout.wave
        )
    return rollout


def resize(
    submission: Submission, sizes: Sequence[int | str], *, actor: Actor = None, reason: str = ""
) -> Rollout:
    """Cut the runs of the waves that are not released into waves of these sizes; return it.

    Parts such as "10%" are of these runs. Raises OptionError for the sizes, ActionRefused if every
    wave is released.
    """
    refuse_sizes(sizes)
    with _changing(submission, (*rounds.OPEN, *rounds.STOPPED), reason) as rollout:
        released, later = rollout.waves[: rollout.wave], rollout.waves[rollout.wave :]
        if not later:
            raise ActionRefused("Every wave of this rollout is released.", "state_conflict")
        rows = Run.objects.filter(submission=submission, id__gt=rollout.released_to)
        ids = list(rows.order_by("id").values_list("id", flat=True))
        try:
            counts = sizes_of(sizes, len(ids))
        except OptionError as error:
            raise OptionError("sizes", error.problem) from None
        rounds.change(rollout, waves=[*released, *waves_stored(ids, counts)])
        AuditEntry.write(_RESIZE, on=submission, actor=actor, reason=reason, sizes=list(counts))
    return rollout


def named(rollout: Rollout) -> str:
    """Return the number and the size of the next wave, as "2/30"; empty if there is none."""
    later = rollout.waves[rollout.wave :]
    return f"{rollout.wave + 1}/{later[0]['size']}" if later else ""


@contextmanager
def _changing(
    submission: Submission, states: Sequence[RolloutState], reason: str
) -> Iterator[Rollout]:
    refuse_text("reason", reason, most=REASON_LIMIT)
    with rounds.locked(submission.pk) as rollout:
        if rollout is None:
            raise ActionRefused("This submission has no waves.", "state_conflict")
        if rollout.state not in states:
            raise ActionRefused(f"This rollout is {rollout.state}.", "state_conflict")
        yield rollout


def _has_asked(rollout: Rollout, actor: Any) -> bool:
    if actor is None:
        return False
    changes = AuditEntry.objects.filter(
        object_type="submission", object_id=str(rollout.pk), action=_RESIZE
    ).select_related("actor", "token")
    asked = [rollout.requested_by, rollout.requested_by_token]
    asked += [one for change in changes for one in (change.actor, change.token)]
    own = identities(actor)
    return any(one is not None and not own.isdisjoint(identities(one)) for one in asked)
