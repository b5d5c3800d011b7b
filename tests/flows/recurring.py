"""Recurring jobs of a scene: made through the front door, and judged by when they are due."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from jobs.catalog.encoding import encode_body
from jobs.core.ids import scheduled_id
from jobs.core.sql import now
from jobs.models import Job, Owner
from jobs.schedules import moment_of, slot_of
from tests.flows.processes import judged
from tests.judge import SubmitLog, TaskLog, Verdict, read_submit_events, read_task_events
from tests.judge.rows import TriggeredRow
from tests.judge.schedules import Case, Due, Era, judge_schedules
from tests.judge.sqlreader import read_rules, read_triggered
from tests.waiting import wait_for

ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns")

# Every due time before a moment is handed out and done, and no job change is still unread.
SETTLED = """
SELECT c.slot > 2 * extract(epoch FROM %s::timestamptz) AND c.again_seen IS NOT NULL
    AND NOT EXISTS (SELECT FROM jobs_tick WHERE done_at IS NULL)
    AND NOT EXISTS (SELECT FROM jobs_job AS j
                    WHERE NOT pg_visible_in_snapshot(j.changed_xid, c.again_seen))
    AND NOT EXISTS (SELECT FROM jobs_job AS j
                    WHERE j.paused_from IS NOT NULL AND j.paused_until <= clock_timestamp())
    AND NOT EXISTS (SELECT FROM jobs_run WHERE ended_at IS NULL)
FROM jobs_cursor AS c
"""
CAUGHT_UP = """
SELECT to_timestamp(first_slot / 2.0), to_timestamp(end_slot / 2.0), created_at, done_at
FROM jobs_tick WHERE kind = 'catch_up' ORDER BY id DESC LIMIT 1
"""


@dataclass
class Recurring:
    """The jobs of a scene, and when they are due."""

    url: str
    folder: Path
    tasks: Path
    cases: dict[str, Case] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def moment(self) -> datetime:
        """Return PostgreSQL's time."""
        return self._ask("SELECT clock_timestamp()")

    def beating(self) -> None:
        """Wait for the pulse: from then on due times count."""
        since = self.moment()
        beaten = "SELECT EXISTS (SELECT FROM jobs_cursor WHERE beat_at > %s)"
        wait_for(lambda: self._ask(beaten, since), seconds=30, what="a pulse")

    def made(
        self,
        jobs: Iterable[dict[str, Any]],
        *,
        before: datetime,
        ends_at: datetime,
        after: datetime | None = None,
    ) -> None:
        """Note jobs that were made between two moments (until now), and are due until an end."""
        rules, after = read_rules(self.url), after or self.moment()
        for job in jobs:
            era = Era(
                rule=rules[job["key"]],
                begins=before,
                sure_from=after,
                sure_until=ends_at,
                ends=ends_at,
            )
            self.cases[job["key"]] = Case([era], reasons_of(job))
            self.jobs[job["key"]] = job

    def settled(self, until: datetime, *, seconds: float) -> None:
        """Wait until all due times before a moment are triggered, and their runs have ended."""
        wait_for(lambda: self._ask(SETTLED, until), seconds=seconds, what="all to be done")

    def verdict(self) -> Verdict:
        """Have the judge look, at due times and at runs; print and return. A bad one fails."""
        submits = SubmitLog(self.folder / "submits.log")
        submitted = {
            run_id
            for event in read_submit_events(submits.path)
            if event.event == "ok"
            for run_id in event.ids
        }
        triggered, missed = read_triggered(self.url)
        # Single submits have no submission either.
        triggered = [row for row in triggered if row.run_id not in submitted]
        found = judge_schedules(self.cases, triggered=triggered, missed=missed)
        print(found.report())
        ids = [row.run_id for row in self._due_rows(triggered)]
        submits.intend("due", count=len(ids))
        submits.ok("due", ids)
        assert found.ok, found.report()
        print(judged(self.url, self.tasks, submits.path).report())
        return found

    def follows_policies(self) -> None:
        """Fail unless each job has run exactly what its policy wants after the last outage."""
        first, until, *judged = self._row(CAUGHT_UP)
        triggered, _ = read_triggered(self.url)
        for key, case in self.cases.items():
            due = Due.of(case.eras)
            missed = sorted(moment for moment in due.runs if first <= moment < until)
            # It was judged between these moments: a deadline may have passed in between.
            wanted = [
                (due.runs - set(missed)) | set(run_late(self.jobs[key], missed, judged_at=at))
                for at in judged
            ]
            ran = {row.due_at for row in triggered if row.key == key}
            assert ran - due.perhaps in wanted, self.jobs[key]

    def _due_rows(self, rows: list[TriggeredRow]) -> list[TriggeredRow]:
        """Return the runs that the formula accounts for: all others are ghosts."""
        due = {key: Due.of(case.eras) for key, case in self.cases.items()}
        return [
            row
            for row in rows
            if row.key in due and row.due_at in due[row.key].runs | due[row.key].perhaps
        ]

    def _ask(self, query: str, *parameters: object) -> Any:
        row = self._row(query, *parameters)
        return row and row[0]

    def _row(self, query: str, *parameters: object) -> Any:
        with psycopg.connect(self.url, connect_timeout=10) as connection:
            return connection.execute(query, parameters).fetchone()  # type: ignore[arg-type]


def wait_until(moment: datetime) -> None:
    """Return at that moment, by PostgreSQL's clock."""
    wait_for(lambda: now() >= moment, seconds=(moment - now()).total_seconds() + 5)


def reasons_of(job: dict[str, Any]) -> frozenset[str]:
    """Return why due times of a job may be missed, by its policy; with `all` only by its limits."""
    if job.get("misfire", "once") != "all":
        return frozenset({"outage"})
    reasons = {"misfire_cap": "cap", "misfire_deadline_seconds": "deadline"}
    return frozenset(reason for limit, reason in reasons.items() if limit in job)


def run_late(job: dict[str, Any], missed: list[datetime], *, judged_at: datetime) -> list[datetime]:
    """Return which of the due times that were missed a job's policy has run."""
    match job["misfire"]:
        case "skip":
            return []
        case "once":
            return missed[-1:]
    limit = judged_at - timedelta(seconds=job.get("misfire_deadline_seconds", 10**8))
    return [moment for moment in missed[-job.get("misfire_cap", 100) :] if moment >= limit]


def job_of(key: str, **fields: Any) -> dict[str, Any]:
    """Return a job as the front door takes it: its task notes each start in the scene's log."""
    return {"key": key, "task": "tests.record", "arguments": {"n": 1}, "max_attempts": 30, **fields}


def due_soon(owner: Owner, *, seconds: float, count: int, history: str) -> dict[Job, datetime]:
    """Return jobs of every minute, first due after `seconds` and then one each half second."""
    first = slot_of(now()) + round(2 * seconds)
    jobs = [
        Job(
            owner=owner,
            key=f"{history}-{number}",
            task="tests.record",
            payload=encode_body([], {"n": number}, max_bytes=1_000),
            schedule="interval",
            interval_minutes=1,
            phase=0,
            shard=(first + number) % 120,
            history_policy=history,
            # Due once while the scene looks.
            end_at=moment_of(first + count),
        )
        for number in range(count)
    ]
    Job.objects.bulk_create(jobs)
    return {job: moment_of(first + number) for number, job in enumerate(jobs)}


def starts(log: TaskLog) -> Counter[str | None]:
    """Return how many bodies of each run have begun, by the tasks' own log."""
    return Counter(event.run for event in read_task_events(log.path) if event.event == "start")


def ids_of(due: dict[Job, datetime]) -> list[str]:
    return [str(scheduled_id(job.pk, at)) for job, at in due.items()]
