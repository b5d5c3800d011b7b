"""Which owners' ends are recorded for webhooks and mails: those that any of them asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jobs.core import sql
from jobs.core.locks import LockClass
from jobs.models import EndListener, EventType, MailSubscription, WebhookEndpoint
from jobs.models.notice import Interest
from jobs.system import ends
from jobs.system.notices.events import owners_of

NAME: Final = "notices"
"""The listener of `jobs/system/ends.py`."""
ENDS: Final = {EventType.RUN_ENDED.value, EventType.SUBMISSION_ENDED.value}

_ANY: Final = """
SELECT EXISTS (SELECT FROM jobs_webhookendpoint WHERE is_active)
    OR EXISTS (SELECT FROM jobs_mailsubscription WHERE is_active)
    OR EXISTS (SELECT FROM jobs_endlistener WHERE name = %s) AS found
"""


def is_any() -> bool:
    """Return whether there is an active endpoint or mail subscription, or a row of the listener.

    If not, `sync_all` has nothing to do.
    """
    return bool(sql.query(_ANY, [NAME])[0]["found"])


def _sync(interests: Sequence[Interest]) -> None:
    """Listen to the owners whose ends these active interests ask for, and to no others."""
    asked = owners_of(one for one in interests if ENDS & set(one.events))
    wanted = {EndListener.ALL} if asked is None else set(asked)
    known = set(EndListener.objects.filter(name=NAME).values_list("owner_id", flat=True))
    for owner_id in wanted - known:
        ends.listen(NAME, owner_id=owner_id)
    for owner_id in known - wanted:
        ends.unlisten(NAME, owner_id=owner_id)


def sync_all() -> bool:
    """Listen for all active endpoints and subscriptions; say whether there is any.

    Call it in a transaction: a change of one calls it in its own, after the change.
    """
    # Two at once would not see each other's changes, and could end what the other listens to.
    sql.query("SELECT pg_advisory_xact_lock(%s, 0)", [LockClass.NOTICE_LISTENERS])
    interests = [
        *WebhookEndpoint.objects.filter(is_active=True),
        *MailSubscription.objects.filter(is_active=True),
    ]
    _sync(interests)
    return bool(interests)
