"""A hidden value goes nowhere else: who sends it back as `••••` may change nothing beside it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from fleet import Kind
from jobs import job, submit
from jobs.definitions.single import create_job
from jobs.models import Job, Owner, Run
from tests.jobs.admin.conftest import as_root, person, root
from tests.jobs.admin.jobs.test_form import errors, fields
from tests.jobs.api.conftest import Caller, caller, post, problem
from tests.jobs.api.job_scenes import change
from tests.jobs.scenes import admitted, living_worker, recorded

__all__ = ["as_root", "caller", "person", "root"]

KEPT = {"url": "https://acme.example", "password": "key-of-acme"}
STORED = {"text": KEPT}
SHOWN = {"text": KEPT | {"password": "••••"}}
ELSEWHERE = {"text": {"url": "https://evil.example", "password": "••••"}}
ADDED = {"text": SHOWN["text"] | {"copy": "••••"}}
SPEC: dict[str, Any] = {"key": "call", "task": "tests.call", "arguments": STORED}


@job(name="tests.call")
def call(text: dict[str, Any]) -> int:
    return len(text)


@job(name="tests.call_otherwise")
def call_otherwise(text: dict[str, Any]) -> int:
    return len(text)


@pytest.fixture
def failed_run(acme: Owner) -> Run:
    run = submit("tests.call", arguments=STORED, owner=acme, max_attempts=1)
    recorded(admitted(living_worker(), run), Kind.FAILED)
    run.refresh_from_db()
    return run


@pytest.fixture
def job_row(acme: Owner, settings: Any) -> Job:
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}
    create_job(acme, SPEC)
    return Job.objects.get()


@pytest.mark.parametrize("face", ["api", "page"])
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (SHOWN, STORED),
        (ELSEWHERE, None),
        (ADDED, None),
        ({"text": {"password": "••••"}}, None),
        ({"text": {"url": "https://evil.example"}}, {"text": {"url": "https://evil.example"}}),
    ],
)
def test_a_retry_takes_no_hidden_value_elsewhere(
    caller: Caller, as_root: Client, failed_run: Run, *, face: str, arguments: Any, found: Any
) -> None:
    """All as it was, or all anew; else nothing changes, and the field is named."""
    if face == "page":
        path = reverse("jobs:run_action", args=[failed_run.id, "retry"])
        answer = as_root.post(path, {"arguments": json.dumps(arguments)})
        assert (answer.status_code == 302) == bool(found)
    else:
        path = f"/runs/{failed_run.id}/retry"
        answer = post(caller(failed_run.owner), path, {"arguments": arguments})
        if found:
            assert answer.status_code == 202
        else:
            named = problem(answer, 422, answer.json()["code"])["field"]
            assert named.startswith("arguments.text")
    failed_run.refresh_from_db()
    assert failed_run.arguments[1] == (found or STORED)
    assert failed_run.state == ("queued" if found else "failed")


@pytest.mark.parametrize(
    ("method", "body", "found"),
    [
        ("patch", {"name": "Other"}, STORED),
        ("patch", {"arguments": SHOWN, "priority": 3}, STORED),
        ("patch", {"arguments": ELSEWHERE}, None),
        ("patch", {"task": "tests.call_otherwise"}, None),
        ("put", {**SPEC, "arguments": SHOWN, "priority": 3}, STORED),
        ("put", {**SPEC, "arguments": ELSEWHERE}, None),
        ("put", {**SPEC, "task": "tests.call_otherwise", "arguments": SHOWN}, None),
    ],
)
def test_a_job_takes_no_hidden_value_elsewhere(
    caller: Caller, job_row: Job, method: str, body: dict[str, Any], found: Any
) -> None:
    """Neither to another address nor to another task."""
    body.pop("key", None)
    answer = change(caller(job_row.owner), method, f"/jobs/{job_row.pk}", body)
    if found is None:
        assert problem(answer, 422, answer.json()["code"])["field"].startswith("arguments")
    else:
        assert answer.status_code == 200, answer.content
    again = Job.objects.get()
    assert (again.task, again.payload) == (job_row.task, job_row.payload)


@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize(
    ("task", "arguments", "is_kept"),
    [
        ("tests.call", SHOWN, True),
        ("tests.call", ELSEWHERE, False),
        ("tests.call_otherwise", SHOWN, False),
        ("tests.call_otherwise", None, False),
    ],
)
def test_the_form_takes_no_hidden_value_elsewhere(
    job_row: Job,
    person: Callable[..., Client],
    *,
    sees: bool,
    task: str,
    arguments: Any,
    is_kept: bool,
) -> None:
    """Whether or not the editor sees arguments: no person sees a hidden one."""
    permissions = ["view_owner", "view_job", "change_job", "view_target"]
    client = person("mia", *permissions, *["view_arguments"] * sees, acme="admin")
    text = json.dumps(arguments) if arguments else json.dumps(SHOWN) if sees else ""
    given = fields(job_row.owner, key="call", name="New", task=task, arguments=text)
    answer = client.post(reverse("admin:jobs_job_change", args=[job_row.pk]), given)
    assert answer.status_code == (302 if is_kept else 200)
    if not is_kept:
        assert set(errors(answer)) == {"arguments"}
    again = Job.objects.get()
    assert (again.task, again.payload) == (job_row.task, job_row.payload)
    assert again.name == ("New" if is_kept else "")
