"""An import of jobs that is open: its file, and what it would do, found out once and stored."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from jobs.definitions.file_import import Problem, Report, preview_import
from jobs.definitions.upsert import Upserted
from jobs.models import JobImport, Owner

KEPT: Final = timedelta(days=1)
AT_WORK: Final = timedelta(minutes=10)
"""An import whose report takes longer than this was given up, as its process ended."""


def opened(content: bytes, *, owner: Owner, user: Any, name: str) -> JobImport | None:
    """Store a file with what it would do, in the place of the person's import before it.

    None while a file of the same person is still being read: one at a time costs one process.
    """
    over = Q(created_at__lt=Now() - KEPT)
    mine = Q(user=user) & (Q(report__isnull=False) | Q(created_at__lt=Now() - AT_WORK))
    JobImport.objects.filter(over | mine).delete()
    try:
        with transaction.atomic():
            made = JobImport.objects.create(
                owner=owner, user=user, name=name, content=zlib.compress(content, 1)
            )
    except IntegrityError:
        return None
    try:
        store(made, preview_import(content, owner=owner))
    except BaseException:
        made.delete()
        raise
    return made


def content_of(kept: JobImport) -> bytes:
    """Return the file as it was given."""
    return zlib.decompress(kept.content)


def store(kept: JobImport, report: Report) -> None:
    """Store what an import would do."""
    kept.report = zlib.compress(json.dumps(asdict(report)).encode(), 1)
    kept.save(update_fields=["report"])


def report_of(kept: JobImport) -> Report:
    """Return what an import would do, as it was stored."""
    found = json.loads(zlib.decompress(kept.report or b""))
    upserted = found["upserted"]
    return Report(
        rows=found["rows"],
        problems=tuple(Problem(**problem) for problem in found["problems"]),
        upserted=upserted and Upserted(**upserted),
    )
