"""jobs/definitions/sql: a deletion takes every row that names the job, directly or indirectly."""

import re
from collections.abc import Callable, Sequence

import pytest
from django.db import transaction

from jobs import delete_jobs, upsert_jobs
from jobs.core import sql
from jobs.models import Job, Owner, WebhookDelivery
from tests.jobs.noticed_jobs import naming_counts, notice
from tests.jobs.scenes import behind

pytestmark = pytest.mark.usefixtures("committed")

NAMING_TABLES = """
WITH RECURSIVE naming AS (
    SELECT 'jobs_job'::regclass::oid AS id
    UNION
    SELECT c.conrelid FROM pg_constraint c JOIN naming ON c.confrelid = naming.id
    -- PostgreSQL itself deletes or changes the rows of the other constraints.
    WHERE c.contype = 'f' AND c.confdeltype IN ('a', 'r')
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
        upsert_jobs(
            owner,
            [{"key": key, "task": "tests.add", "arguments": {"x": 1, "y": 2}} for key in keys],
        )
    for job in Job.objects.select_related("owner"):
        notice(job)
    act(acme, keys)
    assert set(Job.objects.values_list("owner__slug", flat=True)) == {"northwind"}
    assert naming_counts() == [len(keys)] * 5


@pytest.mark.parametrize("act", [delete_jobs, in_a_bulk])
def test_a_delivery_that_is_made_meanwhile_is_deleted_too(
    acme: Owner, act: Callable[[Owner, Sequence[str]], object]
) -> None:
    """The deletion waits for its transaction, and then sees it."""
    upsert_jobs(acme, [{"key": "a", "task": "tests.add", "arguments": {"x": 1, "y": 2}}])
    notice(Job.objects.get())
    with behind(lambda: act(acme, ["a"])) as (begin, outcomes):
        other = WebhookDelivery.objects.get()
        other.pk, other.event_id = None, "evt_meanwhile"
        other.save()
        sql.query("SELECT id FROM jobs_webhookendpoint FOR KEY SHARE")
        begin()
    assert [one for one in outcomes if isinstance(one, Exception)] == []
    assert not Job.objects.exists() and naming_counts() == [0] * 5


@pytest.mark.parametrize("name", ["definitions/delete", "definitions/delete_one"])
def test_the_deletion_knows_every_table_that_names_a_job(name: str) -> None:
    """PostgreSQL refuses the commit if one row of one table is left: its constraints are asked."""
    text = sql.statement(name)
    known = set(re.findall(r"DELETE FROM (\w+)", text))
    assert {row["name"] for row in sql.query(NAMING_TABLES)} == known
