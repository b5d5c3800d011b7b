"""Actions on the rollout of a submission: its waves."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from django.db.models import F, Func, IntegerField
from django.utils.translation import gettext_noop as _
from pydantic import BeforeValidator, Field

from jobs.actions.conditions import Rows
from jobs.actions.declared import Action, Call, Reason, Shown, sentence
from jobs.actions.texts import Name
from jobs.core.errors import ActionRefused
from jobs.core.phrases import Phrase, phrase
from jobs.models import Rollout, RolloutState, Scope
from jobs.rollouts import rounds, verbs
from jobs.rollouts.waves import sizes_from
from jobs.runs.bulk import reopen_failed

_COUNT: Final = Func(
    F("rollout__waves"), function="jsonb_array_length", output_field=IntegerField()
)


class RolloutResume(Reason):
    """How a rollout goes on."""

    retry_failed: Annotated[
        bool,
        Shown(
            _("Retry its failed runs"),
            _("If not, the failures so far are accepted; later ones count against the limit."),
        ),
    ] = Field(False, description="Queue its failed runs again; if not, they are accepted.")


def _as_text(given: Any) -> Any:
    return str(given) if isinstance(given, int) else given


class WaveRelease(Reason):
    """Which wave is released."""

    # The command line sends digits as a number.
    wave: Annotated[Name, BeforeValidator(_as_text), Shown(_("Wave"))] = Field(
        "",
        description='The next wave, by its number or with its size, as "2" or "2/30": another one'
        " is not released.",
    )


class WaveSizes(Reason):
    """The waves that are not released."""

    sizes: Annotated[
        Name,
        Shown(
            _("Sizes"),
            _("Counts, or parts of the runs that are not released: 30, 10%, 100%"),
        ),
    ] = Field(
        min_length=1,
        description="Counts, or parts of the runs that are not released, as 30, 10%, 100%.",
    )


def _open(rows: Rows) -> Rows:
    return rows.filter(rollout__state__in=rounds.OPEN)


def _stopped(rows: Rows) -> Rows:
    return rows.filter(rollout__state__in=rounds.STOPPED)


def _before_last(rows: Rows) -> Rows:
    """Narrow to rollouts of which a wave is not released."""
    return rows.filter(rollout__wave__lt=_COUNT)


def _resume(submission: Any, call: Call) -> Rollout:
    if call.body.retry_failed:
        # While it is stopped: none of them starts before the failures are counted anew.
        left = reopen_failed(submission, **call.audited).left
        if left:
            text = _("%(count)s of its failed runs are left to retry: resume it once more.")
            raise ActionRefused(phrase(text, count=left), "state_conflict")
    return verbs.resume(submission, **call.audited)


def _release(submission: Any, call: Call) -> Rollout:
    return verbs.release(submission, wave=call.body.wave, **call.audited)


def _next_wave(submission: Any) -> list[tuple[str, Phrase]]:
    rollout = submission.rollout
    named = verbs.named(rollout)
    number, _slash, size = named.partition("/")
    text = _("%(number)s of %(count)s (runs: %(size)s)")
    return [(named, phrase(text, number=number, count=len(rollout.waves), size=size))]


def _released(_submission: Any, rollout: Rollout) -> Phrase:
    text = _("Wave %(number)s is released: %(count)s runs.")
    return phrase(text, number=rollout.wave, count=rollout.waves[rollout.wave - 1]["size"])


def _resize(submission: Any, call: Call) -> Rollout:
    return verbs.resize(submission, sizes_from(call.body.sizes), **call.audited)


def _resized(_submission: Any, rollout: Rollout) -> Phrase:
    counts = ", ".join(f"{wave['size']:,}" for wave in rollout.waves[rollout.wave :])
    return phrase(_("The next waves have %(counts)s runs."), counts=counts)


_action = partial(Action, scope=Scope.OPERATE, locks=False)

ROLLOUT_ACTIONS: Final = (
    _action(
        name="pause",
        label=_("Pause the rollout"),
        explains=_("Nothing more of the submission starts until it is resumed; running runs end."),
        permission="jobs.cancel_submission",
        applies=_open,
        refused=_("No wave of %(row)s is on its way."),
        act=lambda submission, call: verbs.pause(submission, **call.audited),
        done=sentence(_("Nothing more of it starts until it is resumed.")),
    ),
    _action(
        name="resume",
        label=_("Resume the rollout"),
        explains=_("Its waves go on, and the failures so far no longer count."),
        permission="jobs.retry_run",
        body=RolloutResume,
        applies=_stopped,
        refused=_("The rollout of %(row)s is not stopped."),
        act=_resume,
        done=sentence(_("It goes on.")),
    ),
    _action(
        name="release",
        label=_("Release the next wave"),
        explains=_("The next wave does not wait for the end of this one, nor for its time."),
        permission="jobs.retry_run",
        body=WaveRelease,
        choices={"wave": _next_wave},
        applies=lambda rows: _before_last(_open(rows)).filter(rollout__needs_approval=False),
        refused=_("No wave of %(row)s waits to be released by an operator."),
        act=_release,
        done=_released,
    ),
    _action(
        name="approve",
        label=_("Approve the next wave"),
        explains=_("The next wave is released now. Who has submitted the runs cannot approve it."),
        scope=Scope.APPROVE,
        permission="jobs.approve_submission",
        body=WaveRelease,
        choices={"wave": _next_wave},
        applies=lambda rows: _before_last(
            rows.filter(rollout__state=RolloutState.WAITING, rollout__needs_approval=True)
        ),
        refused=_("No wave of %(row)s waits for an approval."),
        act=_release,
        done=_released,
    ),
    _action(
        name="resize",
        label=_("Change the next waves"),
        explains=_("The runs that are not released go out in waves of these sizes."),
        permission="jobs.cancel_submission",
        body=WaveSizes,
        applies=lambda rows: _before_last(_open(rows) | _stopped(rows)),
        refused=_("Every wave of %(row)s is released."),
        act=_resize,
        done=_resized,
    ),
)
