"""Runs: searched by what an index answers, counted quickly; how far a submission is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from fleet import Kind
from jobs.admin.runs.page import RunAdmin
from jobs.core import counting, sql
from jobs.models import Owner, Run, Submission
from jobs.runs.reads.pace import Pace
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

RUNS = "admin:jobs_run_changelist"


def found(client: Client, **query: Any) -> set[Run]:
    page = client.get(reverse(RUNS), query)
    assert page.status_code == 200, page
    return set(page.context["cl"].result_list)


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
    assert found(as_root, submission=failed_run.submission_id) == {failed_run}


def test_runs_are_found_by_their_age(as_root: Client, failed_run: Run, northwind: Owner) -> None:
    """Up to that age."""
    [old] = submitted(northwind)
    id_of_2023 = "01900000-0000-7000-8000-000000000001"
    sql.query("UPDATE jobs_run SET id = %s WHERE id = %s", [id_of_2023, old.id])
    assert found(as_root, age="30d") == {failed_run}


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


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def submission(acme: Owner) -> Submission:
    """Five runs: two have failed, one has succeeded, two wait."""
    runs = submitted(acme, 5, max_attempts=1)
    worker = living_worker()
    for run, kind in zip(runs, (Kind.FAILED, Kind.FAILED, Kind.SUCCEEDED), strict=False):
        admission = admitted(worker, run)
        recorded(admission, Kind.STARTED)
        recorded(admission, kind)
    return Submission.objects.get()


def test_the_page_says_how_much_how_fast_and_how_long(
    as_root: Client, submission: Submission
) -> None:
    """In numbers: of five runs three have ended."""
    url = reverse("admin:jobs_submission_change", args=[submission.pk])
    page = as_root.get(url).content.decode()
    assert "60 % (3 / 5)" in page
    assert "so far" in page


@pytest.mark.parametrize(
    ("ended", "seconds", "percentage", "rate"),
    [
        (2_999, 60, "99 %", "50.0 / s"),
        (3_000, 3_000, "100 %", "1.0 / s"),
        (30, 600, "1 %", "3.0 / min"),
        (1, 7_200, "0 %", "0.5 / h"),
        (0, 60, "0 %", ""),
    ],
)
def test_a_pace_has_a_unit_that_can_be_read(
    ended: int, seconds: int, percentage: str, rate: str
) -> None:
    """100 % is said of all only."""
    pace = Pace(ended, 3_000, NOW - timedelta(seconds=seconds), NOW)
    assert (pace.percentage, pace.rate) == (percentage, rate)
