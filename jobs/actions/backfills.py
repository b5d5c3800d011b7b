"""Actions on backfills."""

from __future__ import annotations

from typing import Final

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_noop as _

from jobs.actions.conditions import Rows
from jobs.actions.declared import Action, Noun
from jobs.actions.submissions import cancelled
from jobs.models import Backfill, Run, Scope
from jobs.runs.bulk import CANCELLABLE


def _with_work_left(backfills: Rows) -> Rows:
    runs = Run.objects.filter(submission=OuterRef("submission"), state__in=sorted(CANCELLABLE))
    return backfills.filter(Q(done_at=None) | Exists(runs))


BACKFILLS: Final = Noun(
    name="backfill",
    rows=lambda: Backfill.objects.select_related("job__owner", "submission__owner"),
    owner="job__owner",
    section="jobs",
    shown_by="job",
    view="jobs.view_job",
    actions=(
        Action(
            name="cancel",
            label=_("Cancel"),
            explains=_("No more runs are made, and its runs that have not ended are cancelled."),
            scope=Scope.OPERATE,
            permission="jobs.cancel_submission",
            applies=_with_work_left,
            refused=_("Every run of this backfill has ended, or was asked to stop."),
            is_repeatable=True,
            act=lambda backfill, call: backfill.submission.cancel(**call.audited),
            done=cancelled,
            locks=False,
            is_destructive=True,
        ),
    ),
)
