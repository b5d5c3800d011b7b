"""An open import of jobs: its file, and a stored report of what it would change."""

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

MAX_AGE: Final = timedelta(days=1)
READING_TIME: Final = timedelta(minutes=10)
"""Without a report after this time, the import's process has ended: the import is deleted."""


def opened(content: bytes, *, owner: Owner, user: Any, name: str) -> JobImport | None:
    """Store a file with its report; it replaces the person's earlier import.

    None while another file of this person is being read: a person can keep only one process busy.
    """
    over = Q(created_at__lt=Now() - MAX_AGE)
    mine = Q(user=user) & (Q(report__isnull=False) | Q(created_at__lt=Now() - READING_TIME))
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


def content_of(job_import: JobImport) -> bytes:
    """Return the file as it was given."""
    return zlib.decompress(job_import.content)


def store(job_import: JobImport, report: Report) -> None:
    """Store the report of what an import would change."""
    job_import.report = zlib.compress(json.dumps(asdict(report)).encode(), 1)
    job_import.save(update_fields=["report"])


def report_of(job_import: JobImport) -> Report:
    """Return the stored report of an import."""
    found = json.loads(zlib.decompress(job_import.report or b""))
    upserted = found["upserted"]
    return Report(
        rows=found["rows"],
        problems=tuple(Problem(**problem) for problem in found["problems"]),
        upserted=upserted and Upserted(**upserted),
    )
