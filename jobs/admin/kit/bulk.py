"""Acting on many rows: found by the list's own filter, moved in chunks, audited as one act."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from django.db import models, transaction

from jobs.admin.kit.verbs import Act, Verb
from jobs.models import AuditEntry, Owner

CHUNK: Final = 1_000
BUDGET_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many rows were moved; and the key of the last, when the time ran out before the end."""

    moved: int
    after: Any = None


def owners_of(rows: models.QuerySet[Any]) -> Counter[int]:
    """Count rows by owner."""
    counts = rows.order_by().values_list("owner_id").annotate(count=models.Count("*"))
    return Counter(dict(counts))


def act_on_many(verb: Verb, rows: models.QuerySet[Any], act: Act, *, described: str) -> Outcome:
    """Do a verb to every row in the order of their keys, a chunk a transaction, for a bounded time.

    The audit is written with the first chunk, so that nothing is moved without it: an entry
    for each owner, with the count of rows that matched and the filter. When the time runs out
    the rest is that behind `after`: rows that were moved may match as before.
    """
    began = time.monotonic()
    is_audited = not verb.audits_bulk
    rest, moved = rows, 0
    while True:
        keys = list(rest.order_by("pk").values_list("pk", flat=True)[:CHUNK])
        if not keys:
            return Outcome(moved)
        with transaction.atomic():
            if not is_audited:
                _audit(verb, rows, act, described=described)
                is_audited = True
            moved += verb.act(keys, act)
        rest = rows.filter(pk__gt=keys[-1])
        if time.monotonic() - began > BUDGET_SECONDS:
            return Outcome(moved, after=keys[-1] if rest.exists() else None)


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
