"""Send owners' settings to the fair queues: weight, cap, pause and rate.

They are sent after a change is committed. The sweep sends them again: a queue may have been
unavailable or emptied, a pause may have ended, a row may have been changed by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction

from fleet import BrokerUnavailable, OwnerSettings
from jobs.core import log_events, sql
from jobs.core.conf import setting
from jobs.models import Owner
from jobs.models.owner import PAUSED
from jobs.runs import unblocking
from jobs.runs.dispatch import owners

logger = logging.getLogger(__name__)

# One process at a time reads and sends, so that older settings never follow newer ones.
ALONE: Final = "SELECT pg_advisory_xact_lock(1721, 0)"


def publish_settings_on_commit(*changed: Owner) -> None:
    """After the commit, send these owners' settings and publish their unblocked runs."""
    slugs = [owner.slug for owner in changed]
    ids = [owner.pk for owner in changed if owner.pk is not None]
    transaction.on_commit(lambda: _publish_logged(slugs), robust=True)
    transaction.on_commit(
        lambda: unblocking.publish_unblocked(owner_ids=ids, lock_keys=[]), robust=True
    )


def publish_all_settings() -> bool:
    """Send all owners' settings, unless sent within a minute; raise BrokerUnavailable."""
    with transaction.atomic():
        return owners().keep(_settings(None), timeout=setting("PUBLISH_TIMEOUT_SECONDS"))


def _publish_logged(slugs: Sequence[str]) -> None:
    try:
        with transaction.atomic():
            owners().set(_settings(slugs), timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable as error:
        names = ", ".join(slugs)
        log_events.SETTINGS_LEFT_TO_SWEEP.log(logger, owners=names, error=error)


def _settings(slugs: Sequence[str] | None) -> list[OwnerSettings]:
    """Return the current settings of these owners, or of all; a deleted owner has the defaults."""
    sql.query(ALONE)
    rows = Owner.objects.all() if slugs is None else Owner.objects.filter(slug__in=slugs)
    facts = ("slug", "weight", "max_running", "rate_limit_per_minute")
    found = {row["slug"]: _of_row(row) for row in rows.values(*facts, is_paused=PAUSED)}
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
        # One second's starts at once: a worker takes several messages in one call.
        burst=max(1, rate or 0),
    )
