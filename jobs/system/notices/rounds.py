"""The system worker's round: events become deliveries and mails, and what is due is sent.

Without an active endpoint, an active subscription and a listener, a round is one statement.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from celery import current_app
from django.db import transaction
from django.urls import NoReverseMatch, reverse
from kombu.exceptions import OperationalError

from fleet import SHARED, BrokerUnavailable, one_line, owner_header
from jobs.core import log_events, sql
from jobs.core.apart import VALUE_ERRORS, apart, in_savepoint, name_spoilt
from jobs.core.conf import setting
from jobs.models import (
    DeliveryState,
    MailDigest,
    MailSubscription,
    Rollout,
    WebhookDelivery,
    WebhookEndpoint,
)
from jobs.system import ends
from jobs.system.notices import alarms, events, listening
from jobs.system.notices.events import Event

logger = logging.getLogger(__name__)

DELIVER: Final = "fairshift.system.deliver_webhook"
SEND_MAIL: Final = "fairshift.system.send_mail"
CLAIM_SECONDS: Final = 60.0
"""How long a sent message may take to be carried out before another one is sent, at least."""
TAKES: Final = 20
"""Most times that a round takes ends."""
MOST: Final = 200
"""Most messages of one endpoint in the queue, and most mails in one round."""
ALARM_SECONDS: Final = 5.0
"""Least seconds between two looks for failing and late jobs by one process."""

_looked_at: Final[list[float]] = [0.0]


def notify() -> dict[str, int]:
    """Store what has happened for those who ask for it, and send what is due."""
    is_asked = listening.is_any()
    if is_asked:
        with transaction.atomic():
            is_asked = listening.sync_all()
    if not is_asked:
        return {"events": 0, "sent": 0}
    stored = _store_ends() + _store_rollouts() + _store_alarms()
    return {"events": stored, "sent": send_due()}


def _interests() -> tuple[list[WebhookEndpoint], list[MailSubscription]]:
    hooks = WebhookEndpoint.objects.filter(is_active=True).select_related("owner")
    mails = MailSubscription.objects.filter(is_active=True).select_related("owner")
    return list(hooks), list(mails)


def _store_ends() -> int:
    stored = 0
    for _take in range(TAKES):
        with transaction.atomic():
            taken = ends.take(listening.NAME)
            # After the take: each end was recorded for an interest that is committed by now.
            hooks, mails = _interests()
            found = [
                *map(events.of_run, taken.runs),
                *map(events.of_submission, taken.submissions),
            ]
            store(found, hooks, mails)
        stored += len(found)
        if not taken.is_full:
            break
    return stored


def _store_rollouts() -> int:
    with transaction.atomic():
        rows = Rollout.objects.filter(untold__isnull=False).select_related("submission__owner")
        taken = list(rows.select_for_update(of=("self",), skip_locked=True)[:MOST])
        found = [event for rollout in taken for event in _events_of(rollout)]
        if taken:
            store(found, *_interests())
            Rollout.objects.filter(pk__in=[one.pk for one in taken]).update(untold=None)
    return len(found)


def _events_of(rollout: Rollout) -> list[Event]:
    try:
        url = setting("SITE_URL").rstrip("/") + reverse("jobs:submission", args=[rollout.pk])
    except NoReverseMatch:
        # A project without our pages.
        url = ""
    try:
        return [events.of_rollout(rollout, told, url=url) for told in rollout.untold or ()]
    except (*VALUE_ERRORS, LookupError, TypeError) as error:
        # Raw SQL has written what is no event.
        name_spoilt(logger, f"the events of the rollout of submission {rollout.pk}", error)
        return []


def _store_alarms() -> int:
    if time.monotonic() - _looked_at[0] < ALARM_SECONDS:
        return 0
    _looked_at[0] = time.monotonic()
    hooks, mails = _interests()
    with transaction.atomic():
        found = alarms.changes([*hooks, *mails])
        store(found, hooks, mails)
    return len(found)


def store(
    found: Sequence[Event],
    hooks: Sequence[WebhookEndpoint],
    mails: Sequence[MailSubscription],
) -> None:
    """Store events for all that ask for them; one that is stored already stays as it is."""
    at = sql.now()
    deliveries = [
        WebhookDelivery(
            endpoint=hook,
            owner_id=hook.owner_id,
            event_id=event.id,
            event_type=event.type.value,
            event_at=event.at,
            data=event.data,
            state=DeliveryState.WAITING,
            next_at=at,
        )
        for hook, event in events.wanted(hooks, found)
    ]
    WebhookDelivery.objects.bulk_create(deliveries, batch_size=500, ignore_conflicts=True)
    _hold(list(events.wanted(mails, found)))


def _hold(wanted: Sequence[tuple[MailSubscription, Event]]) -> None:
    by_mail: dict[tuple[Any, str, str], list[Event]] = defaultdict(list)
    for mail, event in wanted:
        by_mail[mail.pk, event.subject[:300], event.change].append(event)
    if not by_mail:
        return
    rows = [
        (*key, json.dumps([one.data for one in held[-MailDigest.HELD_MOST :]]), len(held))
        for key, held in sorted(by_mail.items())
    ]
    names = ("subscriptions", "subjects", "changes", "lines", "counts")
    quiet = setting("MAIL_QUIET_SECONDS")
    limits = {"most": MailDigest.HELD_MOST, "quiet": quiet}

    def hold(some: Sequence[tuple[Any, ...]]) -> None:
        sql.run("system/hold_mails", {**sql.columns(some, *names), **limits})

    apart(rows, in_savepoint(hold), spoilt=_leave_out)


def _leave_out(row: tuple[Any, ...], error: Exception) -> None:
    name_spoilt(logger, f"the mail of subscription {row[0]} about {row[1]}", error)


def send_due() -> int:
    """Send a message for each delivery and mail that is due; return how many."""
    claim = CLAIM_SECONDS + setting("WEBHOOK_TIMEOUT_SECONDS")
    due = sql.run("system/due_deliveries", {"claim": claim, "most": MOST})
    mails = sql.run("system/due_mails", {"claim": claim, "most": MOST})
    if not due and not mails:
        return 0
    messages = [
        (
            DELIVER,
            {"delivery": row["id"], "is_probe": row["is_probe"]},
            f"webhook-{row['id']}-{row['attempt_count']}",
            # At most two at a time for each endpoint: a slow one leaves slots to the others.
            owner_header(
                row["owner"] or SHARED,
                submission=f"webhook-{row['endpoint_id']}",
                lock=f"webhook-{row['endpoint_id']}-{row['id'] % 2}",
            ),
        )
        for row in due
    ] + [
        (
            SEND_MAIL,
            {"digest": row["id"]},
            f"mail-{row['id']}-{row['sent']}-{row['failure_count']}",
            owner_header(row["owner"] or SHARED, submission=f"mail-{row['subscription_id']}"),
        )
        for row in mails
    ]
    return _publish(messages)


def _publish(messages: Sequence[tuple[str, dict[str, Any], str, dict[str, Any]]]) -> int:
    sent = 0
    queue = setting("NOTICES_QUEUE")
    try:
        with current_app.producer_pool.acquire(block=True) as producer:
            for task, kwargs, task_id, headers in messages:
                current_app.tasks[task].apply_async(
                    kwargs=kwargs,
                    task_id=task_id,
                    headers=headers,
                    queue=queue,
                    producer=producer,
                    retry=False,
                )
                sent += 1
    except (OperationalError, BrokerUnavailable, OSError) as error:
        # They are sent again when their claims have ended.
        log_events.NOTICES_LEFT.log(logger, count=len(messages) - sent, error=one_line(error))
    return sent
