"""Acting on many rows: found by the list's own filter, moved in chunks, audited as one act."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from django.db import models, transaction

from jobs.admin.verbs import Act, Verb
from jobs.models import AuditEntry, Owner

CHUNK: Final = 1_000
BUDGET_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many rows were moved, and whether the time ran out before the last."""

    moved: int
    is_complete: bool


def owners_of(rows: models.QuerySet[Any]) -> Counter[int]:
    """Count rows by owner."""
    counts = rows.order_by().values_list("owner_id").annotate(count=models.Count("*"))
    return Counter(dict(counts))


def act_on_many(verb: Verb, rows: models.QuerySet[Any], act: Act, *, described: str) -> Outcome:
    """Do a verb to every row, a chunk a transaction, for a bounded time.

    The audit is written with the first chunk, so that nothing is moved without it: an entry
    for each owner, with the count of rows that matched and the filter. What is left when the
    time runs out can be asked for again: rows that were moved no longer match.
    """
    began = time.monotonic()
    is_audited = not verb.audits_bulk
    last, moved = None, 0
    while True:
        page = rows.order_by("pk") if last is None else rows.filter(pk__gt=last).order_by("pk")
        keys = list(page.values_list("pk", flat=True)[:CHUNK])
        if not keys:
            return Outcome(moved, is_complete=True)
        with transaction.atomic():
            if not is_audited:
                _audit(verb, rows, act, described=described)
                is_audited = True
            moved += verb.act(keys, act)
        last = keys[-1]
        if time.monotonic() - began > BUDGET_SECONDS:
            return Outcome(moved, is_complete=len(keys) < CHUNK)


def _audit(verb: Verb, rows: models.QuerySet[Any], act: Act, *, described: str) -> None:
    counts = owners_of(rows)
    for owner in Owner.objects.filter(pk__in=counts):
        AuditEntry.write(
            f"{verb.name} {rows.model._meta.verbose_name_plural}",
            on=owner,
            actor=act.actor,
            reason=act.reason,
            matched=counts[owner.pk],
            selection=described,
        )
