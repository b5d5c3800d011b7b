"""Runs: searched by what an index answers, counted quickly, told whole on one page."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from fleet import Kind
from jobs.admin.runs.page import RunAdmin
from jobs.core import counting, sql
from jobs.models import AuditEntry, Backfill, Missed, Owner, Run, Submission
from jobs.owners.limits import pause_owner
from tests.bench.rows import fill
from tests.jobs.admin.conftest import stored_job
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

RUNS = "admin:jobs_run_changelist"


def found(client: Client, **query: Any) -> set[Run]:
    page = client.get(reverse(RUNS), query)
    assert page.status_code == 200, page
    return set(page.context["cl"].result_list)


def page_of(client: Client, run: Run) -> str:
    page = client.get(reverse("admin:jobs_run_change", args=[run.id]))
    assert page.status_code == 200
    return page.content.decode()


def test_search_understands_ids_numbers_targets_and_labels(
    as_root: Client, failed_run: Run, northwind: Owner
) -> None:
    """Each finds the run that it names; what names nothing finds nothing."""
    submitted(northwind, labels={"site": "oslo"}, target="sw-2")
    for term in (
        str(failed_run.id),
        f" {str(failed_run.id).upper()} ",
        str(failed_run.submission_id),
        "sw-1",
        "site:berlin",
    ):
        assert found(as_root, q=term) == {failed_run}, term
    for term in ("sw", "site:", ":", "tests.add", "9" * 30, "'; --", "a\x00b", "²"):
        assert failed_run not in found(as_root, q=term) or "\x00" in term, term


def test_filters_narrow_by_state_owner_and_age(
    as_root: Client, failed_run: Run, northwind: Owner
) -> None:
    """The filter is in the address; nonsense in it filters nothing out and breaks nothing."""
    [queued] = submitted(northwind)
    assert found(as_root, state="failed") == {failed_run}
    assert found(as_root, state="open") == {queued}
    assert found(as_root, owner="northwind") == {queued}
    assert found(as_root, age="1h") == {failed_run, queued}
    assert found(as_root, submission=failed_run.submission_id) == {failed_run}
    assert found(as_root, submission="nonsense") == set()
    assert found(as_root, owner="no-such") == set()
    old = "01900000-0000-7000-8000-000000000001"
    sql.query("UPDATE jobs_run SET id = %s WHERE id = %s", [old, queued.id])
    assert found(as_root, age="30d") == {failed_run}


def test_a_runs_page_has_its_columns(as_root: Client, failed_run: Run) -> None:
    """And a link to its page outside the admin, which has its timeline and attempts."""
    page = page_of(as_root, failed_run)
    for text in (
        "failed",
        "acme",
        "sw-1",
        "w1@here",
        "builtins.TimeoutError",
        "no answer within 5 s",
        "1/1",
        "<b>site</b> berlin",
        reverse("jobs:run", args=[failed_run.pk]),
    ):
        assert text in page, text


def test_a_waiting_run_says_why(as_root: Client, acme: Owner) -> None:
    """The sentence is on its page."""
    [run] = submitted(acme)
    pause_owner(acme, reason="stocktaking")
    assert "Owner acme is paused: stocktaking" in page_of(as_root, run)


LISTS = (
    "run",
    "submission",
    "owner",
    "target",
    "job",
    "missed",
    "backfill",
    "auditentry",
)


@pytest.mark.proof
@pytest.mark.parametrize("name", LISTS)
def test_lists_ask_a_fixed_number_of_questions(as_root: Client, acme: Owner, name: str) -> None:
    """However many rows a page has, and of however many owners, it takes as many queries."""
    url = reverse(f"admin:jobs_{name}_changelist")
    counts, rows = [], []
    for number in range(2):
        more(acme, number)
        as_root.get(url)
        with CaptureQueriesContext(connection) as queries:
            page = as_root.get(url)
        counts.append(len(queries))
        rows.append(len(page.context["cl"].result_list))
    assert 0 < rows[0] < rows[1]
    assert counts[0] == counts[1]


def more(acme: Owner, number: int) -> None:
    """Add rows to every list: of acme, and of owners, targets and jobs of their own."""
    at = timezone.now() - timedelta(hours=1)
    for each in range(3):
        submitted(acme, 2, target=f"sw-{number}-{each}")
        owner = Owner.objects.create(slug=f"more-{number}-{each}")
        [run] = submitted(owner, target="sw", label="again")
        job = stored_job(owner, "k", target=run.target)
        Run.objects.filter(pk=run.pk).update(job=job, state="failed", ended_at=at)
        span = {"job": job, "count": 1}
        Missed.objects.create(owner=owner, first_at=at, last_at=at, reason="outage", **span)
        Backfill.objects.create(start_at=at, end_at=at, submission=run.submission, **span)
        AuditEntry.write("pause", on=job)


@pytest.mark.proof
def test_large_counts_are_estimated_and_capped(
    as_root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole table by PostgreSQL's estimate, a filter exactly up to a cap, pages to the cap."""
    fill(600)
    monkeypatch.setattr(counting, "CAP", 200)
    every = as_root.get(reverse(RUNS)).context["cl"]
    assert str(every.result_count) == "about 600"
    assert every.paginator.num_pages == 2
    some = as_root.get(reverse(RUNS), {"state": "succeeded"}).context["cl"]
    assert str(some.result_count) == "more than 200"
    few = as_root.get(reverse(RUNS), {"state": "failed"}).context["cl"]
    assert few.result_count == Run.objects.filter(state="failed").count() < 200
    assert as_root.get(reverse(RUNS), {"p": "3"}).status_code == 302


def test_a_count_that_takes_too_long_is_given_up(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list comes without it, and the next query has no time limit."""
    assert counting.within(20, lambda: sql.query("SELECT pg_sleep(5)")) is None
    assert counting.within(1_000, lambda: 7) == 7
    [after] = sql.query("SHOW statement_timeout")
    assert not after["statement_timeout"].startswith("20")
    monkeypatch.setattr(counting, "within", lambda _milliseconds, _ask: None)
    monkeypatch.setattr(RunAdmin, "list_per_page", 3)
    submitted(acme, 5)
    full = as_root.get(reverse(RUNS), {"owner": "acme"}).context["cl"]
    assert (str(full.result_count), full.multi_page) == ("many", True)


@pytest.mark.parametrize(("page", "count"), [(1, 2), (2, 5), (3, "at most 6")])
def test_a_list_that_ends_on_its_page_has_an_exact_count(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch, page: int, count: object
) -> None:
    """However long counting takes: "many" is never said of a page without a row."""
    monkeypatch.setattr(counting, "within", lambda _milliseconds, _ask: None)
    monkeypatch.setattr(RunAdmin, "list_per_page", 3)
    submitted(acme, 2 if page == 1 else 5)
    asked = {"owner": "acme", "p": str(page)}
    answer = as_root.get(reverse(RUNS), asked)
    assert str(answer.context["cl"].result_count) == str(count)
    assert "many" not in answer.content.decode()
    if page == 1:
        none = as_root.get(reverse(RUNS), {"owner": "acme", "state": "failed"})
        assert "0 runs" in none.content.decode()


QUESTIONS: tuple[dict[str, str], ...] = (
    {},
    {"state": "failed"},
    {"owner": "acme", "state": "queued"},
    {"age": "1h"},
    {"q": "rack:7"},
    {"q": "acme-sw-0007"},
)


@pytest.mark.proof  # it fills and analyzes partitions
def test_no_question_of_the_run_list_reads_a_whole_partition(as_root: Client) -> None:
    """Each is answered by an index, once PostgreSQL knows that the table is large.

    Right after midnight the day's partition is small, and a scan of it is the best plan.
    """
    fill(30_000)
    sql.query("ANALYZE jobs_owner, jobs_submission, jobs_target, jobs_job")
    rows = sql.query(
        "SELECT relname FROM pg_class WHERE relname ~ '^jobs_run_' AND reltuples > 5000"
    )
    large = [row["relname"] for row in rows]
    assert large
    for query in QUESTIONS:
        plans = _plans(as_root, query)
        assert plans, query
        scanned = [
            line
            for line in plans
            if any(f"Seq Scan on {name} " in line for name in large)
            and "rows=0" not in line
            and "never executed" not in line
        ]
        assert not scanned, f"{query}:\n" + "\n".join(plans)


def _plans(client: Client, query: dict[str, str]) -> list[str]:
    """Ask for the list of runs; return the lines of the plans of its questions about runs."""
    with CaptureQueriesContext(connection) as asked:
        page = client.get(reverse(RUNS), query)
    assert page.status_code == 200
    plans = []
    for question in asked:
        if 'FROM "jobs_run"' in question["sql"] and question["sql"].startswith("SELECT"):
            explained = "EXPLAIN (ANALYZE, COSTS OFF) " + question["sql"].replace("%", "%%")
            plans += [row["QUERY PLAN"] for row in sql.query(explained)]
    return plans


def test_a_submissions_progress_is_told_in_words(as_root: Client, acme: Owner) -> None:
    """The bar has a text, for those who do not see it; and its page leads to its runs."""
    runs = submitted(acme, 4, label="ruleset 42")
    recorded(admitted(living_worker(), runs[0]), Kind.SUCCEEDED, result=b"1")
    page = as_root.get(reverse("admin:jobs_submission_changelist")).content.decode()
    assert "1 succeeded · 3 queued" in page and "ruleset 42" in page
    submission = Submission.objects.get()
    detail = as_root.get(reverse("admin:jobs_submission_change", args=[submission.pk]))
    assert f"submission={submission.pk}" in detail.content.decode()


def test_the_list_begins_with_what_tells_most(as_root: Client, failed_run: Run) -> None:
    """The id is last: a narrow screen may cut it off. The task leads to the run as the id does."""
    page = as_root.get(reverse(RUNS)).content.decode()
    columns = ("state_mark", "task_name", "origin", "owner_link", "target_name", "error", "took")
    places = [page.index(f"field-{name}") for name in (*columns, "id_link")]
    assert places == sorted(places)
    address = reverse("admin:jobs_run_change", args=[failed_run.id])
    assert page.count(f'href="{address}"') == 2


def test_all_rows_are_offered_where_a_filter_hides_some(as_root: Client, failed_run: Run) -> None:
    """Without a filter and a search, a link that shows all would lead to the same page."""
    assert "Show all" not in as_root.get(reverse(RUNS)).content.decode()
    for query in ({"state": "failed"}, {"q": "sw-1"}):
        assert "Show all" in as_root.get(reverse(RUNS), query).content.decode(), query
