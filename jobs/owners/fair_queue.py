"""What owners may have of the workers, in the fair queues as the rows say.

Weight, cap, pause and rate are set in an owner's row. After the commit the queues are told, and
what waits feels it at once; the sweep tells them again what they may have missed: while they
were away, after they were emptied, when a pause ended, or when a row was changed by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction

from fleet import BrokerUnavailable, OwnerSettings
from jobs.core import sql
from jobs.core.conf import setting
from jobs.models import Owner
from jobs.runs import unblocking
from jobs.runs.dispatch import owners

logger = logging.getLogger(__name__)


# One teller at a time, who reads with the lock in hand: what was read first is told first.
ALONE: Final = "SELECT pg_advisory_xact_lock(1721, 0)"
_SETTINGS = """
SELECT slug, weight, max_running, rate_limit_per_minute,
    paused_at IS NOT NULL
        AND (paused_until IS NULL OR paused_until > clock_timestamp()) AS is_paused
FROM jobs_owner WHERE %(slugs)s::text[] IS NULL OR slug = ANY(%(slugs)s::text[])
"""


def tell_on_commit(*changed: Owner) -> None:
    """Tell the fair queues of these owners once the transaction commits; free what may go on.

    Whoever changes an owner's row calls this; the sweep does it otherwise, some seconds later.
    """
    slugs = [owner.slug for owner in changed]
    ids = [owner.pk for owner in changed if owner.pk is not None]
    transaction.on_commit(lambda: _tell_logged(slugs), robust=True)
    transaction.on_commit(
        lambda: unblocking.publish_freed(owner_ids=ids, lock_keys=[]), robust=True
    )


def tell_all() -> bool:
    """Tell the fair queues of all owners, unless they were told just that within a minute.

    True when it was sent. Raises BrokerUnavailable.
    """
    with transaction.atomic():
        return owners().keep(_settings(None), timeout=setting("PUBLISH_TIMEOUT_SECONDS"))


def _tell_logged(slugs: Sequence[str]) -> None:
    try:
        with transaction.atomic():
            owners().set(_settings(slugs), timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable as error:
        logger.warning("the sweep will tell the queues of %s: %s", ", ".join(slugs), error)


def _settings(slugs: Sequence[str] | None) -> list[OwnerSettings]:
    """Return what these owners may have as of now, or all; one without a row has the defaults."""
    sql.query(ALONE)
    rows = sql.query(_SETTINGS, {"slugs": None if slugs is None else list(slugs)})
    found = {row["slug"]: _of_row(row) for row in rows}
    gone = {slug: OwnerSettings(slug) for slug in slugs or ()}
    return list((gone | found).values())


def _of_row(row: dict[str, Any]) -> OwnerSettings:
    per_minute = row["rate_limit_per_minute"]
    rate = per_minute and per_minute / 60
    return OwnerSettings(
        row["slug"],
        weight=row["weight"],
        max_running=row["max_running"],
        is_paused=row["is_paused"],
        rate=rate,
        # A second's worth may come at once: a worker takes several messages in one call.
        burst=max(1, rate or 0),
    )
