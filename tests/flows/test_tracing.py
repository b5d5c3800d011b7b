"""A run continues the trace of the request or span that submits it, on a real worker."""

import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from opentelemetry.sdk.trace import TracerProvider
from pytest_django import Settings

from jobs import submit
from jobs.models import Owner, Run
from jobs.owners.tokens import make_token
from tests.flows.processes import Processes
from tests.flows.traced import say
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

TASKS = "tests.tasks,tests.flows.traced"


def lines(log: Path, event: str) -> list[dict[str, Any]]:
    """Return the JSON lines of a log that have this event."""
    found = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in found if line["event"] == event]


def test_a_run_s_log_lines_have_the_trace_of_its_request(
    processes: Processes, owner: Owner, settings: Settings
) -> None:
    """With run, owner, task, attempt and worker; a run that it submits has the same trace."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("flows.say",)}
    worker = processes.start_worker(LOG_FORMAT="json", FAIRSHIFT_TASKS=TASKS)
    processes.ready()
    trace_id = secrets.token_hex(16)
    token = make_token("scene", scopes=["submit"], owner=owner).secret
    answer = Client().post(
        "/api/v1/runs",
        {"task": "flows.say", "arguments": {"text": "hello", "again": True}},
        content_type="application/json",
        headers={
            "Authorization": f"Bearer {token}",
            "traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01",
        },
    )
    assert answer.status_code == 202, answer.content
    wait_for(lambda: lines(worker.log, "said again"), what="the line of the second run")
    [first], [second] = lines(worker.log, "said hello"), lines(worker.log, "said again")
    assert first["run_id"] == answer.json()["id"] != second["run_id"]
    for line in (first, second):
        assert (line["trace_id"], line["owner"], line["task"]) == (trace_id, "acme", "flows.say")
        assert line["attempt"] == 1 and line["worker"].startswith("worker")


def test_a_span_of_the_task_is_a_child_of_the_span_that_submits(
    processes: Processes, owner: Owner
) -> None:
    """By OpenTelemetry's own instrumentation of Celery; no argument is in a span."""
    spans = processes.folder / "spans"
    processes.start_worker(FAIRSHIFT_TASKS=TASKS, SPANS=str(spans))
    processes.ready()
    tracer = TracerProvider().get_tracer("tests")
    canary = secrets.token_hex(16)
    with tracer.start_as_current_span("request") as request:
        run = submit(say, text=canary, owner=owner)
    context = request.get_span_context()
    wait_for(lambda: Run.objects.get(id=run.id).is_ended, what="the run's end")
    text = wait_for(lambda: spans.exists() and spans.read_text(), what="a span")
    span = json.loads(text)
    assert span["name"] == "run/flows.say"
    assert span["context"]["trace_id"] == f"0x{context.trace_id:032x}"
    assert span["parent_id"] == f"0x{context.span_id:016x}"
    assert span["attributes"]["messaging.message.id"] == str(run.id)
    assert canary not in text
