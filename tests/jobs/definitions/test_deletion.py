"""jobs/definitions/sql: a deletion takes every row that names the job, directly or indirectly."""

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction

from jobs import delete_jobs, upsert_jobs
from jobs.core import sql
from jobs.definitions.single import delete_job
from jobs.models import AuditEntry, Job, MailDigest, Owner, WebhookDelivery, WebhookEndpoint
from jobs.system.notices.endpoints import delete_endpoint
from tests.jobs.noticed_jobs import naming_counts, notice
from tests.jobs.scenes import behind

pytestmark = pytest.mark.usefixtures("committed")

CALL = {"key": "a", "task": "tests.add", "arguments": {"x": 1, "y": 2}}
NAMING_TABLES = """
WITH RECURSIVE naming AS (
    SELECT 'jobs_job'::regclass::oid AS id
    UNION
    SELECT c.conrelid FROM pg_constraint c JOIN naming ON c.confrelid = naming.id
    -- PostgreSQL itself deletes or changes the rows of the other constraints.
    WHERE c.contype = 'f' AND c.confdeltype IN ('a', 'r')
        -- Rows of a table that loses the job stay, and those that name them.
        AND naming.id::regclass::text <> ALL(%s)
)
SELECT id::regclass::text AS name FROM naming
"""


def in_a_bulk(owner: Owner, keys: Sequence[str]) -> None:
    with transaction.atomic():
        delete_jobs(owner, keys)


@pytest.mark.parametrize("keys", [["a"], ["a", "b"]], ids=["one", "two"])
@pytest.mark.parametrize("act", [delete_jobs, in_a_bulk])
def test_a_job_that_notices_name_is_deleted_with_them(
    acme: Owner, northwind: Owner, act: Callable[[Owner, Sequence[str]], object], keys: list[str]
) -> None:
    """By one statement and by those of a bulk; what names another job stays."""
    for owner in (acme, northwind):
        upsert_jobs(owner, [{**CALL, "key": key} for key in keys])
    for job in Job.objects.select_related("owner"):
        notice(job)
    act(acme, keys)
    assert set(Job.objects.values_list("owner__slug", flat=True)) == {"northwind"}
    assert naming_counts() == [len(keys)] * 5


@pytest.mark.parametrize("act", [delete_jobs, in_a_bulk])
def test_a_mail_that_is_held_meanwhile_is_deleted_too(
    acme: Owner, act: Callable[[Owner, Sequence[str]], object]
) -> None:
    """The deletion waits for its transaction, and then sees it."""
    upsert_jobs(acme, [CALL])
    notice(Job.objects.get())
    with behind(lambda: act(acme, ["a"])) as (begin, outcomes):
        other = MailDigest.objects.get()
        other.pk, other.subject = None, "meanwhile"
        other.save()
        sql.query("SELECT id FROM jobs_mailsubscription FOR KEY SHARE")
        begin()
    assert [one for one in outcomes if isinstance(one, Exception)] == []
    assert not Job.objects.exists() and naming_counts() == [0] * 5


@pytest.mark.parametrize("act", [delete_jobs, in_a_bulk])
def test_a_webhook_goes_with_its_job_and_its_deliveries_later(
    acme: Owner, act: Callable[[Owner, Sequence[str]], object]
) -> None:
    """It is marked as its own verb marks it. There may be millions of deliveries: they stay."""
    upsert_jobs(acme, [CALL])
    notice(Job.objects.get())
    act(acme, ["a"])
    [row] = WebhookEndpoint._base_manager.values()
    assert (row["is_active"], row["job_id"]) == (False, None)
    assert row["deleted_at"] is not None and WebhookDelivery.objects.count() == 1
    other = WebhookEndpoint.objects.create(
        owner=acme,
        name="scene",
        events=row["events"],
        url=row["url"],
        secret=row["secret"],
        bound_to="other",
    )
    delete_endpoint(other)
    same = WebhookEndpoint._base_manager.filter(pk=other.pk).values().get()
    unlike = {name for name, value in row.items() if value != same[name]}
    assert unlike == {"id", "bound_to", "created_at", "deleted_at"}


@pytest.mark.parametrize("is_bulk", [False, True])
def test_each_webhook_and_subscription_is_audited(acme: Owner, is_bulk: bool) -> None:
    """With the user who deletes the job."""
    upsert_jobs(acme, [CALL])
    job = Job.objects.select_related("owner").get()
    notice(job)
    user = get_user_model().objects.create_user("ann")
    with transaction.atomic() if is_bulk else nullcontext():
        assert delete_job(job, actor=user)
    user.delete()
    columns = ("actor_name", "action", "object_type", "owner_id", "details")
    assert list(AuditEntry.objects.order_by("action").values_list(*columns)) == [
        ("ann", "delete", "job", acme.pk, {"name": "a"}),
        ("ann", "delete mail subscription", "mailsubscription", acme.pk, {"name": "scene"}),
        ("ann", "delete webhook", "webhookendpoint", acme.pk, {"name": "scene"}),
    ]


@pytest.mark.parametrize("name", ["definitions/delete", "definitions/delete_one"])
def test_the_deletion_knows_every_table_that_names_a_job(name: str) -> None:
    """PostgreSQL refuses the commit if one row of one table is left: its constraints are asked."""
    text = sql.statement(name)
    gone = set(re.findall(r"DELETE FROM (\w+)", text))
    stay = set(re.findall(r"UPDATE (\w+) SET [^;]*?job_id = NULL", text))
    assert {row["name"] for row in sql.query(NAMING_TABLES, [sorted(stay)])} == gone | stay
