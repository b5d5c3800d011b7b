"""Retry what has failed of a submission: the verb of its page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit.verbs import Act, Verb, always
from jobs.core.errors import StateConflict
from jobs.core.states import State
from jobs.models import AuditEntry, Run, Submission
from jobs.runs.manual_retry import reopen_runs

CHUNK: Final = 1_000
BUDGET_SECONDS: Final = 20.0
"""No request takes much longer; what is left then is said, and the verb does it once more."""


def _with_failed_runs(submissions: QuerySet[Any]) -> QuerySet[Any]:
    return submissions.filter(Exists(_failed().filter(submission=OuterRef("pk"))))


def _failed() -> QuerySet[Run]:
    return Run.objects.filter(state=State.FAILED)


def _retry_failed(keys: Sequence[int], act: Act) -> int:
    """Queue the failed runs of these submissions again; those that fail meanwhile stay failed."""
    until = time.monotonic() + BUDGET_SECONDS
    moved = left = 0
    for submission in Submission.objects.select_related("owner").filter(pk__in=keys):
        failed = _failed().filter(submission=submission).order_by("pk")
        last = failed.values_list("pk", flat=True).last()
        rest = failed.filter(pk__lte=last) if last else failed.none()
        AuditEntry.write(
            "retry failed runs",
            on=submission,
            actor=act.actor,
            reason=act.reason,
            matched=rest.count(),
        )
        while runs := list(rest.values_list("pk", flat=True)[:CHUNK]):
            if time.monotonic() > until:
                left += rest.count()
                break
            moved += _reopened(runs, act.reason)
            rest = rest.filter(pk__gt=runs[-1])
    act.results.append((moved, left))
    return moved


def _reopened(runs: Sequence[Any], reason: str) -> int:
    try:
        with transaction.atomic():
            return len(reopen_runs(runs, reason=reason))
    except StateConflict:
        # The only one of its chunk, which somebody else has retried meanwhile.
        return 0


def _in_words(row: Any, act: Act) -> str:
    [(moved, left)] = act.results
    said = _("%(row)s: %(moved)s of its runs queued again.") % {"row": row, "moved": f"{moved:,}"}
    more = _("%s failed runs are left: retry them once more.") % f"{left:,}" if left else ""
    return f"{said} {more}".strip()


RETRY_FAILED = Verb(
    name="retry_failed",
    label=lazy("Retry failed runs"),
    permission="jobs.retry_run",
    applies=_with_failed_runs,
    act=_retry_failed,
    done=lazy("queued again"),
    refused=always(lazy("No run of this submission has failed.")),
    warning=lazy("Each failed run of it is queued again with a fresh set of attempts."),
    message=_in_words,
    is_for_many=False,
)
