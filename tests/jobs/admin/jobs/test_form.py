"""The form of a job: arguments checked by the task's signature, kept as bytes, shown to few."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.core.crypto import read_body
from jobs.models import AuditEntry, Job, Owner, Target
from tests.jobs.admin.conftest import stored_job

pytestmark = pytest.mark.usefixtures("offered")

EDITS = ("view_owner", "view_job", "add_job", "change_job", "view_target")


def fields(owner: Owner, **changes: Any) -> dict[str, Any]:
    return {
        "owner": owner.pk,
        "key": "sum",
        "name": "Sum",
        "enabled": "on",
        "task": "tests.add",
        "arguments": '{"x": 1, "y": 2}',
        "labels": "{}",
        "schedule": "manual",
        "misfire": "once",
        "misfire_cap": "100",
        "overlap": "allow",
        "history_policy": "full",
    } | changes


def moment(name: str) -> dict[str, str]:
    """Return the two fields of a time."""
    return {f"{name}_0": "2031-03-04", f"{name}_1": "05:06:07"}


def errors(answer: Any) -> dict[str, Any]:
    return dict(answer.context["adminform"].form.errors)


def test_a_job_is_made_with_arguments_in_the_types_of_the_signature(
    as_root: Client, acme: Owner
) -> None:
    """What the form takes is what a run is called with, and making it is audited."""
    as_root.post(reverse("admin:jobs_job_add"), fields(acme, arguments='{"x": "1", "y": 2}'))
    [job] = Job.objects.all()
    assert read_body(job.payload, key=job.payload_key, place=job.place) == ([], {"x": 1, "y": 2})
    assert (job.payload_key, job.schedule) == (0, "manual")
    assert AuditEntry.objects.get().action == "create"


@pytest.mark.parametrize(
    ("field", "changes", "problem"),
    [
        ("arguments", {"arguments": '{"x": 1}'}, "y: is required"),
        ("arguments", {"arguments": "{"}, "line 1, column 2"),
        ("arguments", {"arguments": "NaN"}, "not JSON"),
        ("arguments", {"arguments": '{"x": 1, "x": 2, "y": 3}'}, "x: the name is given twice"),
        ("arguments", {"arguments": "[" * 100_000}, "nested more than"),
        ("arguments", {"arguments": '{"x": 1, "y": ' + "9" * 5_000 + "}"}, ""),
        ("task", {"task": "celery.ping"}, ""),
        ("labels", {"labels": '{"a": 1}'}, ""),
        ("retry_on", {"retry_on": "not a name"}, ""),
        ("key", {"key": ""}, ""),
        ("key", {"key": "a\x00b"}, ""),
        ("interval_minutes", {"schedule": "interval"}, "required"),
        ("zone", {"schedule": "cron", "cron": "@daily", "zone": "Mars/Olympus"}, "Mars/Olympus"),
        ("cron", {"schedule": "manual", "cron": "@daily"}, "does not go with"),
        ("schedule", {"schedule": "never"}, "never"),
        (
            "end_at",
            {"schedule": "cron", "cron": "@daily", **moment("start_at"), **moment("end_at")},
            "later than",
        ),
        ("misfire_cap", {"misfire_cap": "100001"}, "100000"),
    ],
)
def test_a_mistake_stands_at_its_field(
    as_root: Client, acme: Owner, field: str, changes: dict[str, Any], problem: str
) -> None:
    """With what is allowed, or the name of the argument; and nothing is stored."""
    answer = as_root.post(reverse("admin:jobs_job_add"), fields(acme, **changes))
    assert problem in str(errors(answer)[field])
    assert not Job.objects.exists()


def test_a_target_of_another_owner_is_refused(
    as_root: Client, acme: Owner, northwind: Owner
) -> None:
    """A job acts on its own owner's targets."""
    target = Target.objects.create(owner=northwind, name="sw-9")
    answer = as_root.post(reverse("admin:jobs_job_add"), fields(acme, target=target.pk))
    assert "another owner" in str(errors(answer)["target"])


def test_arguments_are_hidden_and_kept_without_the_permission(
    person: Callable[..., Client], acme: Owner
) -> None:
    """An editor who may not see them changes the rest; they stay as they are."""
    job = stored_job(acme, payload=b'[[], {"x": 4711, "y": 2}, {}]')
    client = person("ann", *EDITS, acme="admin")
    url = reverse("admin:jobs_job_change", args=[job.pk])
    assert "4711" not in client.get(url).content.decode()
    answer = client.post(url, fields(acme, name="New name", arguments=""))
    assert answer.status_code == 302
    job.refresh_from_db()
    assert job.name == "New name" and b"4711" in bytes(job.payload)


def test_arguments_are_shown_with_the_permission(
    person: Callable[..., Client], acme: Owner
) -> None:
    """To a viewer as text, to an editor in the form."""
    job = stored_job(acme, payload=b'[[], {"x": 4711, "y": 2}, {}]')
    url = reverse("admin:jobs_job_change", args=[job.pk])
    for name, role in (("ann", "admin"), ("ben", "viewer")):
        client = person(name, *EDITS, "view_arguments", acme=role)
        assert "4711" in client.get(url).content.decode(), role
    blind = person("cy", *EDITS, acme="viewer")
    page = blind.get(url).content.decode()
    assert "4711" not in page and "Hidden" in page


def test_an_admin_of_one_owner_makes_no_job_for_another(
    person: Callable[..., Client], acme: Owner, stranger: Owner
) -> None:
    """The owner field takes only owners for whom one may edit."""
    client = person("ann", *EDITS, acme="admin", stranger="operator")
    answer = client.post(reverse("admin:jobs_job_add"), fields(stranger))
    assert "owner" in errors(answer) and not Job.objects.exists()
