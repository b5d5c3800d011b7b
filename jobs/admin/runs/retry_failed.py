"""The verb that retries the failed runs of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit.verbs import Act, Verb, always
from jobs.core.states import State
from jobs.models import Run, Submission
from jobs.runs.manual_retry import reopen_failed


def _with_failed_runs(submissions: QuerySet[Any]) -> QuerySet[Any]:
    failed = Run.objects.filter(state=State.FAILED, submission=OuterRef("pk"))
    return submissions.filter(Exists(failed))


def _retry_failed(keys: Sequence[int], act: Act) -> int:
    [submission] = Submission.objects.select_related("owner").filter(pk__in=keys)
    moved, left = reopen_failed(submission, actor=act.actor, reason=act.reason)
    act.results.append((moved, left))
    return moved


def _in_words(row: Any, act: Act) -> str:
    [(moved, left)] = act.results
    done = _("%(row)s: %(moved)s of its runs queued again.") % {"row": row, "moved": f"{moved:,}"}
    more = _("%s failed runs are left: retry them once more.") % f"{left:,}" if left else ""
    return f"{done} {more}".strip()


RETRY_FAILED = Verb(
    name="retry_failed",
    label=lazy("Retry failed runs"),
    permission="jobs.retry_run",
    applies=_with_failed_runs,
    act=_retry_failed,
    done=lazy("queued again"),
    refused=always(lazy("No run of this submission has failed.")),
    warning=lazy("Each of its failed runs is queued again with a fresh set of attempts."),
    message=_in_words,
    is_for_many=False,
)
