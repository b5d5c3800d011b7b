"""Events of rollouts: noted in the transaction of what they tell, for webhooks and mails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, Q

from jobs.core import sql
from jobs.core.states import State
from jobs.models import EventType, MailSubscription, Rollout, Run, WebhookEndpoint


def note(rollout: Rollout, kind: EventType, *, wave: int) -> None:
    """Add an event to a locked rollout that the caller saves, if a webhook or mail asks for it.

    `wave` is the number of the wave whose runs it counts.
    """
    if not _is_asked(rollout, kind):
        return
    counts = {state.value: count for state, count in states_of(rollout, wave).items()}
    told = {"type": kind.value, "wave": wave, "at": sql.now().isoformat(), "counts": counts}
    rollout.untold = [*(rollout.untold or ()), {**told, "reason": rollout.reason}]


def states_of(rollout: Rollout, wave: int) -> dict[State, int]:
    """Count the runs of a wave by state."""
    found: Mapping[str, Any] = rollout.waves[wave - 1]
    runs = Run.objects.filter(submission=rollout.pk, id__range=(found["first"], found["last"]))
    rows = runs.order_by().values_list("state").annotate(count=Count("*"))
    return {State(state): count for state, count in rows}


def _is_asked(rollout: Rollout, kind: EventType) -> bool:
    asks = Q(is_active=True, events__contains=[kind.value])
    asks &= Q(owner=None) | Q(owner=rollout.owner_id)
    return (
        WebhookEndpoint.objects.filter(asks).exists()
        or MailSubscription.objects.filter(asks).exists()
    )
