"""Acting on many rows: selected by the list's own filter, in chunks, audited as one action."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from django.db import models, transaction

from jobs.admin.kit.verbs import Act, Verb
from jobs.models import AuditEntry, Owner

CHUNK: Final = 1_000
BUDGET_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many rows have changed; `after` is the last key if the time limit came before the end."""

    moved: int
    after: Any = None


def act_on_many(verb: Verb, rows: models.QuerySet[Any], act: Act, *, described: str) -> Outcome:
    """Act on all rows in the order of their keys, one transaction a chunk, until BUDGET_SECONDS.

    The first chunk's transaction also writes the audit: for each owner an entry with the number
    of matching rows and the filter. At the time limit the rows that are left are those with keys
    above `after`; the filter cannot tell, because it may still match rows that have changed.
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
    by_owner = rows.order_by().values_list("owner_id")
    counts = dict(by_owner.annotate(count=models.Count("*")))
    for owner in Owner.objects.filter(pk__in=counts):
        AuditEntry.write(
            f"{verb.name} {rows.model._meta.verbose_name_plural}",
            on=owner,
            actor=act.actor,
            reason=act.reason,
            matched=counts[owner.pk],
            selection=described,
        )
