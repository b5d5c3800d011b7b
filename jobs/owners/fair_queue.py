"""What owners may have of the workers, in the fair queues as the rows say.

Weight, cap, pause and rate are set in an owner's row. After the commit the queues are told, and
what waits feels it at once; the sweep tells them again what they may have missed: while they
were away, after they were emptied, when a pause ended, or when a row was changed by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from fleet import BrokerUnavailable, OwnerSettings
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.errors import OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.models import AuditEntry, Owner
from jobs.models.fields import COUNT_MOST, WEIGHT_MOST
from jobs.runs import preparation, unblocking
from jobs.runs.dispatch import owners

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

logger = logging.getLogger(__name__)

LIMITS: Final = {
    "weight": WEIGHT_MOST,
    "max_running": COUNT_MOST,
    "rate_limit_per_minute": COUNT_MOST,
}
"""What may be set, from 1 to so much."""

# One teller at a time, who reads with the lock in hand: what was read first is told first.
ALONE: Final = "SELECT pg_advisory_xact_lock(1721, 0)"
_SETTINGS = """
SELECT slug, weight, max_running, rate_limit_per_minute,
    paused_at IS NOT NULL
        AND (paused_until IS NULL OR paused_until > clock_timestamp()) AS is_paused
FROM jobs_owner WHERE %(slugs)s::text[] IS NULL OR slug = ANY(%(slugs)s::text[])
"""


def limit_owner(
    owner: Owner | str,
    *,
    actor: AbstractBaseUser | None = None,
    reason: str = "",
    **limits: int | None,
) -> None:
    """Set `weight` (1 to 1000), `max_running` or `rate_limit_per_minute` (None: no limit).

    What is not named stays. Acts on what waits, once committed; what runs goes on. Raises
    OptionError, and UnknownOwner for a name that is none.
    """
    owner = preparation.named(owner)
    refuse_text("reason", reason, most=REASON_LIMIT)
    for name, limit in limits.items():
        if name not in LIMITS:
            near = get_close_matches(name, LIMITS, n=1)
            raise OptionError(name, f"is no limit; {', '.join(near or LIMITS)} may be set")
        if limit is None and name != "weight":
            continue
        # A bool is an int to Python, and a mistake here.
        if type(limit) is not int or not 1 <= limit <= LIMITS[name]:
            none = "" if name == "weight" else ", or None for no limit"
            problem = f"is a whole number from 1 to {LIMITS[name]}{none}; not {limit!r:.80}"
            raise OptionError(name, problem)
    with transaction.atomic():
        # Locked, so that the audit says what was there before.
        owner.refresh_from_db(from_queryset=Owner.objects.select_for_update())
        before = {name: getattr(owner, name) for name in limits}
        for name, limit in limits.items():
            setattr(owner, name, limit)
        owner.save(update_fields=list(limits))
        AuditEntry.write("limit", on=owner, actor=actor, reason=reason, before=before, after=limits)
        tell_on_commit(owner)


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
