"""The body of a delivery: the event, and details of its run that the endpoint's maker may see."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from jobs.catalog.redaction import hidden, hidden_arguments
from jobs.core.crypto import Damaged, UnknownKey
from jobs.core.states import State
from jobs.models import Run, WebhookDelivery
from jobs.models.notice import EventType
from jobs.models.webhook import WebhookEndpoint
from jobs.runs.reads.log import LogLine, as_facts, last_lines
from jobs.system.notices.interests import maker_of, sees_details

LINES: Final = 20
"""The last lines of a failed run's log that are sent."""
CHARACTERS: Final = 1_000
"""Most characters of each."""


def body_of(delivery: WebhookDelivery) -> str:
    """Return the JSON text that is signed and sent."""
    data = dict(delivery.data)
    endpoint = delivery.endpoint
    if endpoint.has_details and delivery.event_type == EventType.RUN_ENDED:
        data["details"] = _details(endpoint, data["run"])
    message = {
        "type": delivery.event_type,
        "timestamp": delivery.event_at.isoformat(),
        "data": data,
    }
    # A result may have what Celery's JSON can hold: times, decimals, UUIDs, bytes.
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=str)


def _details(endpoint: WebhookEndpoint, run_id: str) -> dict[str, Any] | None:
    """Return what the run's page shows to those who may see it; None without the right to."""
    run = Run.objects.select_related("owner").filter(id=run_id).first()
    if run is None or not sees_details(maker_of(endpoint), run.owner_id):
        return None
    args, kwargs = _read(lambda: run.arguments) or ([], {})
    shown_args, shown_kwargs = hidden_arguments(run.task, args, kwargs)
    return {
        "args": shown_args,
        "kwargs": shown_kwargs,
        "result": hidden(_read(lambda: run.result_value)),
        "error_message": run.error_text,
        "log": [_short(line) for line in last_lines(run, most=LINES).lines]
        if run.state == State.FAILED
        else [],
    }


def _short(line: LogLine) -> dict[str, Any]:
    return {**as_facts(line), "text": line.text[:CHARACTERS]}


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (UnknownKey, Damaged):
        return None
