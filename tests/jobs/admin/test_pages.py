"""Every page of the admin opens, also when a row of it is broken."""

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.core import sql
from jobs.models import AuditEntry, Backfill, Job, Missed, Owner, Run, Submission, Target
from jobs.owners.limits import pause_owner

LISTS = (
    "owner",
    "job",
    "missed",
    "backfill",
    "submission",
    "run",
    "target",
    "worker",
    "auditentry",
)
# Their rows have pages with tests of their own.
MORE = ("calendar", "window", "targetgroup")
MARKUP = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "page", [*(f"{name}_changelist" for name in LISTS + MORE), *(f"{name}_add" for name in MORE)]
)
def test_each_list_and_form_opens_empty(as_root: Client, page: str) -> None:
    """A fresh installation shows empty lists, not errors."""
    assert as_root.get(reverse(f"admin:jobs_{page}")).status_code == 200


@pytest.mark.parametrize(
    ("name", "query"), [("run", "state"), ("auditentry", "action"), ("job", "task"), ("run", "job")]
)
@pytest.mark.parametrize("value", ["nonsense", "\x00", "9" * 30])
def test_a_filter_by_nonsense_is_no_error(
    as_root: Client, name: str, query: str, value: str
) -> None:
    """An address may say anything; PostgreSQL refuses to be asked for a NUL."""
    page = as_root.get(reverse(f"admin:jobs_{name}_changelist"), {query: value})
    assert page.status_code == 200


def test_entries_of_the_audit_are_found_by_their_action(as_root: Client, acme: Owner) -> None:
    """And no others."""
    for action in ("approve window", "pause"):
        AuditEntry.write(action, on=acme)
    page = as_root.get(reverse("admin:jobs_auditentry_changelist"), {"action": "approve window"})
    assert [entry.action for entry in page.context["cl"].result_list] == ["approve window"]


@pytest.mark.parametrize("name", LISTS)
def test_each_page_of_a_row_opens(as_root: Client, failed_run: Run, acme: Owner, name: str) -> None:
    """Each row has a page, and its list shows it."""
    job = Job.objects.create(owner=acme, key="nightly", task="tests.add", payload=b"[[], {}, {}]")
    now = timezone.now()
    Missed.objects.create(job=job, owner=acme, first_at=now, last_at=now, count=1, reason="outage")
    Backfill.objects.create(
        job=job, start_at=now, end_at=now, count=1, submission=failed_run.submission
    )
    pause_owner(acme, reason="stocktaking")
    row = apps.get_model("jobs", name).objects.first()
    listed = as_root.get(reverse(f"admin:jobs_{name}_changelist"))
    assert listed.status_code == 200
    assert "unreadable" not in listed.content.decode()
    page = as_root.get(reverse(f"admin:jobs_{name}_change", args=[row.pk]))
    assert page.status_code == 200
    assert "unreadable" not in page.content.decode()


def test_markup_in_every_field_is_escaped(as_root: Client, acme: Owner) -> None:
    """Text of other people is shown as text, on every page that has it."""
    owner = Owner.objects.create(slug="evil", name=MARKUP, paused_reason=MARKUP, zone=MARKUP[:64])
    pause_owner(owner, reason=MARKUP)
    target = Target.objects.create(owner=owner, name=MARKUP, labels={MARKUP: MARKUP})
    job = Job.objects.create(
        owner=owner, key=MARKUP, name=MARKUP, task=MARKUP, payload=b"{", cron=MARKUP, target=target
    )
    submission = Submission.objects.create(
        owner=owner, label=MARKUP, task=MARKUP, queue=MARKUP, run_count=1
    )
    run = Run.objects.create(
        id="01900000-0000-7000-8000-000000000001",
        owner=owner,
        job=job,
        submission=submission,
        target=target,
        task=MARKUP,
        queue=MARKUP,
        state="failed",
        payload=b'[[], {"x": "<script>alert(1)</script>"}, {}]',
        labels={MARKUP: MARKUP},
        policy={MARKUP: MARKUP},
        lock_key=f"evil:{MARKUP}",
        max_attempts=1,
        error_type=MARKUP,
        error_message=MARKUP,
        history=[["queued", 1.0, ""], ["failed", 2.0, MARKUP]],
    )
    rows = {"owner": owner, "job": job, "submission": submission, "run": run, "target": target}
    for name, row in rows.items():
        for page in (
            reverse(f"admin:jobs_{name}_changelist"),
            reverse(f"admin:jobs_{name}_change", args=[row.pk]),
        ):
            answer = as_root.get(page)
            assert answer.status_code == 200, page
            assert MARKUP not in answer.content.decode(), page
    audit = as_root.get(reverse("admin:jobs_auditentry_changelist")).content.decode()
    assert MARKUP not in audit


def test_a_broken_row_never_hides_the_others(as_root: Client, failed_run: Run, acme: Owner) -> None:
    """What raw SQL has spoilt is shown as unreadable; the rest of the page is as ever."""
    Job.objects.create(owner=acme, key="sound", task="tests.add", payload=b"[[], {}, {}]")
    job = Job.objects.create(owner=acme, key="spoilt", task="no.such.task", payload=b"\xff")
    sql.query(
        "UPDATE jobs_job SET zone = 'Mars/Olympus', cron = '* * nonsense', schedule = 'cron', "
        "payload_key = 7, labels = '[1]' WHERE id = %s",
        [job.pk],
    )
    sql.query(
        "UPDATE jobs_run SET payload = '\\xff', result = '\\xff', result_key = 9, "
        "labels = '[1]', policy = '3', history = '[\"x\"]', job_id = 4711, worker_id = NULL "
        "WHERE id = %s",
        [failed_run.id],
    )
    sql.query("UPDATE jobs_owner SET zone = 'Mars/Olympus' WHERE id = %s", [acme.pk])
    jobs = as_root.get(reverse("admin:jobs_job_changelist")).content.decode()
    assert "sound" in jobs and "spoilt" in jobs
    runs = as_root.get(reverse("admin:jobs_run_changelist")).content.decode()
    assert str(failed_run.id) in runs
    page = as_root.get(reverse("admin:jobs_run_change", args=[failed_run.id])).content.decode()
    assert "unreadable" in page and "no answer within 5 s" in page
    form = as_root.get(reverse("admin:jobs_job_change", args=[job.pk])).content.decode()
    assert "cannot be read" in form
    assert as_root.get(reverse("admin:jobs_owner_changelist")).status_code == 200
