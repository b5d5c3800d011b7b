"""The runs that a caller sees."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from jobs.models import Run
from jobs.models.access import Access
from jobs.models.run import RunQuerySet

WITH: Final = ("owner", "job", "target")


def visible_runs(access: Access) -> RunQuerySet:
    """Return the runs that a caller sees."""
    return access.narrowed(Run.objects.all())


def find_run(access: Access, run_id: UUID) -> Run:
    """Return a run that the caller sees, with its owner, job and target, or raise DoesNotExist."""
    return visible_runs(access).select_related(*WITH).get(id=run_id)
