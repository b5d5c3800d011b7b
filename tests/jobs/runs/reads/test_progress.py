"""jobs/runs/reads/progress.py: the active runs whose tasks reported how far they are."""

from fleet import Kind
from jobs.core import sql
from jobs.models import Owner
from jobs.runs.reads.progress import newest_progress
from tests.jobs.scenes import admitted, living_worker, progressed, recorded, submitted


def test_the_newest_reports_come_first(acme: Owner, northwind: Owner) -> None:
    """Of all owners, as many as are asked for; runs without a report are left out."""
    worker = living_worker()
    *silent, first = submitted(acme, 2)
    [second] = submitted(northwind)
    for run in silent:
        recorded(admitted(worker, run), Kind.STARTED)
    progressed(admitted(worker, first), 1, 4, "half way")
    progressed(admitted(worker, second), 2.5)
    found = newest_progress(most=9)
    assert [(one.id, one.owner, one.task) for one in found] == [
        (second.id, "northwind", "tests.add"),
        (first.id, "acme", "tests.add"),
    ]
    assert [str(one.progress) for one in found] == ["2.5", "25 % · 1 / 4 · half way"]
    assert newest_progress(most=1) == found[:1]


def test_a_report_ends_with_its_attempt(acme: Owner) -> None:
    """An ended run is not listed, nor is one whose newest attempt has reported nothing."""
    worker = living_worker()
    ended, again = submitted(acme, 2)
    for run, kind in ((ended, Kind.SUCCEEDED), (again, Kind.RETRYING)):
        admission = admitted(worker, run)
        progressed(admission, 1, 2)
        recorded(admission, kind, **({"delay": 0.0} if kind is Kind.RETRYING else {}))
    sql.query("UPDATE jobs_run SET state = 'queued' WHERE id = %s", [again.id])
    second = admitted(worker, again)
    assert newest_progress(most=9) == []
    progressed(second, 2, 2)
    assert [one.id for one in newest_progress(most=9)] == [again.id]
