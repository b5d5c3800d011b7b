"""One attempt of a delivery: signed, sent to a checked address, and recorded.

The address, redirects, sizes and times are checked by the HTTP task (`jobs/catalog/builtin`). An
answer's body is not stored: it could be a page of an inner network.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Final, NamedTuple

from jobs.catalog.builtin.answer import refuse_unexpected
from jobs.catalog.builtin.errors import HttpRequestFailed, HttpRequestRefused
from jobs.catalog.builtin.http import build_request, fetch
from jobs.catalog.retry_policy import RetryPolicy, backoff
from jobs.core import log_events, sql
from jobs.core.conf import setting
from jobs.core.crypto import Damaged, UnknownKey
from jobs.models import DeliveryState, WebhookDelivery
from jobs.system.notices import interests, secrets, signing
from jobs.system.notices.body import body_of

logger = logging.getLogger(__name__)

GONE: Final = 410
"""The status by which a receiver says that it wants no more deliveries."""


class Outcome(NamedTuple):
    """What an attempt came to."""

    status: int | None
    """The answer's status; None without an answer."""
    problem: str = ""
    """Empty: it was delivered."""
    asked_seconds: float = 0.0
    """How long the receiver asks to wait."""


def deliver(delivery_id: int, *, is_probe: bool = False) -> str:
    """Try a waiting delivery once; return what it came to, in a word.

    While its endpoint fails, only a probe is tried. Others wait, without an attempt spent.
    """
    rows = WebhookDelivery.objects.select_related(
        "endpoint__owner", "endpoint__created_by", "endpoint__created_by_token"
    )
    delivery = rows.filter(pk=delivery_id, state=DeliveryState.WAITING).first()
    if delivery is None or not delivery.endpoint.is_active:
        return "dropped"
    if why := interests.why_stopped(delivery.endpoint):
        interests.stop(delivery.endpoint, why)
        return "stopped"
    if delivery.endpoint.failure_count and not is_probe:
        # Due at once when its endpoint is.
        WebhookDelivery.objects.filter(pk=delivery_id).update(next_at=sql.now())
        return "held"
    # PostgreSQL's time: receivers refuse a signature whose time is minutes from theirs.
    at, started = sql.now().timestamp(), time.monotonic()
    outcome = _send(delivery, at=int(at))
    milliseconds = round(1000 * (time.monotonic() - started))
    attempt = json.dumps([round(at, 3), outcome.status, outcome.problem[:300], milliseconds])
    if not outcome.problem:
        sql.run("system/record_delivered", {"id": delivery_id, **_tries(attempt)})
        return "delivered"
    _record_failed(delivery, outcome, attempt)
    return "failed"


def _tries(attempt: str) -> dict[str, object]:
    return {"attempt": attempt, "most": WebhookDelivery.TRIES_MOST}


def _send(delivery: WebhookDelivery, *, at: int) -> Outcome:
    endpoint = delivery.endpoint
    status = None
    try:
        body = body_of(delivery)
        keys = secrets.signing_keys(endpoint)
        signed = signing.headers(keys, event_id=delivery.event_id, at=at, body=body)
        request = build_request(
            "POST",
            endpoint.url,
            headers={"Content-Type": "application/json", **signed},
            body=body,
            json=None,
        )
        answer = fetch(
            request,
            timeout_seconds=setting("WEBHOOK_TIMEOUT_SECONDS"),
            allowed=setting("HTTP_ALLOWED_HOSTS"),
            owner=endpoint.owner.slug if endpoint.owner is not None else None,
        )
        status = answer.status
        refuse_unexpected(request, answer, expected="2xx")
    except (UnknownKey, Damaged) as error:
        return Outcome(None, f"its key cannot be read: {error}")
    except HttpRequestRefused as error:
        return Outcome(status, error.problem)
    except HttpRequestFailed as error:
        return Outcome(status, error.problem, error.retry_after or 0.0)
    # UnknownKey and Damaged are a LookupError and a ValueError: they go before.
    except (TypeError, ValueError, LookupError) as error:
        # Without its text, which may hold a part of the result.
        return Outcome(None, f"its body cannot be made ({type(error).__name__})")
    return Outcome(status)


def _record_failed(delivery: WebhookDelivery, outcome: Outcome, attempt: str) -> None:
    base, cap = setting("WEBHOOK_BACKOFF_SECONDS"), setting("WEBHOOK_BACKOFF_CAP_SECONDS")
    policy = RetryPolicy(
        max_attempts=setting("WEBHOOK_ATTEMPTS"), backoff_seconds=base, backoff_cap_seconds=cap
    )
    is_gone = outcome.status == GONE
    most = setting("WEBHOOK_FAILURES")
    count = delivery.endpoint.failure_count + 1
    reason = (
        outcome.problem if is_gone else f"{count} failures in a row; the last: {outcome.problem}"
    )
    rows = sql.run(
        "system/record_failed",
        {
            "id": delivery.pk,
            **_tries(attempt),
            "attempts": setting("WEBHOOK_ATTEMPTS"),
            "delay": backoff(policy, attempt=delivery.attempt_count + 1),
            "failures": most,
            "base": base,
            "cap": cap,
            "asked": outcome.asked_seconds,
            "is_gone": is_gone,
            "reason": reason[:500],
        },
    )
    for row in rows:
        if row["is_disabled"]:
            log_events.WEBHOOK_DISABLED.log(
                logger, endpoint=row["endpoint_id"], reason=reason[:500]
            )
