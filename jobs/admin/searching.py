"""What the search box of runs understands: only what an index answers."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobs.admin import access
from jobs.models import Target
from jobs.models.run import RunQuerySet

HELP: Final = _(
    "A run's id, a submission's number, a target's whole name, or a label as name:value."
)
_NUMBER_LIMIT: Final = 2**63


def search_runs(runs: RunQuerySet, term: str, *, user: Any) -> RunQuerySet:
    """Return the runs that a term names; none when it names nothing."""
    term = term.strip()
    if not term:
        return runs
    if (run_id := _uuid(term)) is not None:
        return runs.filter(id=run_id)
    names = access.narrowed(Target.objects.all(), user, path="owner").filter(name=term)
    wanted = Q(target_id__in=list(names.values_list("id", flat=True)[:100]))
    if term.isascii() and term.isdigit() and int(term) < _NUMBER_LIMIT:
        wanted |= Q(submission_id=int(term))
    label, colon, value = term.partition(":")
    if colon and label:
        # The second half is what the partial index asks for: PostgreSQL cannot derive it.
        wanted |= Q(labels__contains={label.strip(): value.strip()}) & ~Q(labels={})
    return runs.filter(wanted)


def _uuid(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None
