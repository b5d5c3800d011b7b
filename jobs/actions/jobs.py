"""Actions on jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

from django.db.models.functions import Now
from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.common import deletion
from jobs.actions.declared import Action, Call, Noun, Reason, Shown, sentence
from jobs.actions.texts import Moment
from jobs.core.errors import OptionError, StaleRow
from jobs.core.phrases import Phrase, phrase
from jobs.core.sql import now
from jobs.definitions.single import delete_job, read_job
from jobs.models import Backfill, Job, Run, Scope
from jobs.recurring.backfill import backfill_once, count_backfill, that_can_be_backfilled
from jobs.recurring.pause import pause_jobs
from jobs.runs.submission import run_job_by_key

LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
"""As far as schedules go."""


class JobPause(Reason):
    """A pause of a job."""

    until: Annotated[
        Moment, Shown(_("Until"), _("To stop it without an end, clear “enabled”."))
    ] = Field(description="In the future, before the year 2200.")


class BackfillToMake(Reason):
    """Past due times to be run, of one job."""

    start: Annotated[Moment, Shown(_("From"))] = Field(description="The first moment.")
    end: Annotated[Moment, Shown(_("Until"), _("Not included; not in the future."))] = Field(
        description="Not included; not in the future."
    )
    dry_run: bool = Field(False, description="Count only, and change nothing.")


def _run(job: Any, call: Call) -> tuple[Run, bool]:
    return run_job_by_key(job, idempotency_key=call.once, **call.audited)


def _ran(_job: Any, made: tuple[Run, bool]) -> Phrase:
    run, is_new = made
    if is_new:
        return phrase(_("Submitted as run %(run)s."), run=str(run.id))
    return phrase(_("This form has submitted it before, as run %(run)s."), run=str(run.id))


def _delete(job: Any, call: Call) -> None:
    if not delete_job(job, **call.audited):
        raise StaleRow("job")


def _pause(job: Any, call: Call) -> None:
    if not now() < call.body.until < LATEST:
        raise OptionError("until", f"is in the future, before {LATEST:%Y-%m-%d}")
    pause_jobs([job.pk], until=call.body.until, **call.audited)


def _backfill(job: Any, call: Call) -> Backfill:
    span = call.body.start, call.body.end
    made, _is_new = backfill_once(job, *span, idempotency_key=call.once, **call.audited)
    return made


def _backfilled(_job: Any, made: Backfill) -> Phrase:
    text = _("The backfill has begun: %(count)s runs are being made.")
    return phrase(text, count=made.count)


_OFF: Final = _("%(row)s is not enabled, so it makes no runs.")

JOBS: Final = Noun(
    name="job",
    rows=lambda: Job.objects.select_related("owner", "target"),
    read=lambda key, by: read_job(int(key), by=by),
    view="jobs.view_job",
    actions=(
        Action(
            name="run",
            label=_("Run now"),
            explains=_(
                "One run is submitted, also during a pause. The owner's limits and the job's lock"
                " apply to it."
            ),
            scope=Scope.SUBMIT,
            permission="jobs.run_job",
            applies=lambda jobs: jobs.filter(enabled=True),
            refused=_OFF,
            conflict="job_disabled",
            adds=lambda _job, _body: 1,
            act=_run,
            done=_ran,
            takes_once=True,
            locks=False,
        ),
        Action(
            name="pause",
            label=_("Pause"),
            explains=_("Its schedule makes no runs until then. It can still be run by hand."),
            scope=Scope.OPERATE,
            permission="jobs.pause_job",
            body=JobPause,
            act=_pause,
            done=sentence(_("%(row)s is paused.")),
        ),
        Action(
            name="resume",
            label=_("Resume"),
            explains=_("Its schedule makes runs again. What was due in the pause is not run."),
            scope=Scope.OPERATE,
            permission="jobs.pause_job",
            applies=lambda jobs: jobs.filter(paused_until__gt=Now()),
            refused=_("%(row)s is not paused."),
            is_repeatable=True,
            act=lambda job, call: pause_jobs([job.pk], until=None, **call.audited),
            done=sentence(_("%(row)s is resumed.")),
        ),
        Action(
            name="backfill",
            label=_("Backfill"),
            explains=_("Its due times in a past range are run again, by its present schedule."),
            scope=Scope.OPERATE,
            permission="jobs.run_job",
            body=BackfillToMake,
            applies=lambda jobs: jobs.filter(enabled=True),
            offered=that_can_be_backfilled,
            refused=_("%(row)s is not enabled, has no schedule, or keeps no runs."),
            conflict="job_disabled",
            adds=lambda job, body: count_backfill(job, body.start, body.end),
            act=_backfill,
            done=_backfilled,
            takes_once=True,
            locks=False,
        ),
        deletion(
            explains=_("Its runs stay, with history. Webhooks and mails of this job are deleted."),
            permission="jobs.delete_job",
            act=_delete,
            # The verb's statement compares the version.
            locks=False,
        ),
    ),
)
