"""Old runs for retention, and the judge of what must stay. It imports nothing of the project."""

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

DAYS = {"acme": (90, 180), "globex": (200, 200)}
"""By owner: days for which ended runs stay, and failed ones."""
ENDED = ("succeeded",) * 12 + ("failed", "failed", "cancelled", "expired")
OPEN = "held"
OF_SUBMISSION = 20
"""One run in so many belongs to a submission, of which some have an open run."""


@dataclass(frozen=True)
class Old:
    """One old run, as it is put in."""

    id: str
    owner: str
    state: str
    at: datetime
    ended_at: datetime | None
    submission: int | None
    number: int

    def days(self) -> int:
        usual, failed = DAYS[self.owner]
        return failed if self.state == "failed" else usual


def old_runs(number: int, *, today: datetime, days: list[int], chance: Random) -> list[Old]:
    """Return so many runs of these days ago: a few are open, a few ended long after their day."""
    found = []
    for n in range(number):
        at = today - timedelta(days=chance.choice(days), seconds=-chance.randrange(86_400))
        state = OPEN if chance.random() < 0.01 else chance.choice(ENDED)
        late = chance.randrange(60) if chance.random() < 0.05 else 0
        ended = None if state == OPEN else min(at + timedelta(days=late, seconds=5), today)
        milliseconds = int(at.timestamp() * 1000)
        run_id = UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | n)
        submission = 1 + chance.randrange(200) if n % OF_SUBMISSION == 0 else None
        owner = chance.choice(list(DAYS))
        found.append(Old(str(run_id), owner, state, at, ended, submission, n))
    return found


def must_stay(runs: list[Old], *, today: datetime) -> set[str]:
    """Return the ids of runs that must stay: open ones, young ones, and those of open bulks."""
    bulks = {run.submission for run in runs if run.ended_at is None} - {None}
    return {
        run.id
        for run in runs
        if run.ended_at is None
        or run.submission in bulks
        or run.ended_at >= today - timedelta(days=run.days())
    }


def as_sql(runs: list[Old], owners: dict[str, int]) -> str:
    """Return a statement that inserts runs, each ended one with an attempt."""
    rows = ", ".join(
        f"('{run.id}', {owners[run.owner]}, '{run.state}', '{run.at.isoformat()}', "
        f"{_text(run.ended_at)}, {run.submission or 'NULL'}, "
        f"{run.number})"
        for run in runs
    )
    return f"""
    WITH old AS (
        SELECT id::uuid, owner, state, at::timestamptz, ended::timestamptz, submission::bigint, n
        FROM (VALUES {rows}) AS row (id, owner, state, at, ended, submission, n)
    ), runs AS (
        INSERT INTO jobs_run (id, owner_id, submission_id, task, queue, state, payload, token,
            attempt_count, max_attempts, created_at, queued_at, ended_at, history)
        SELECT id, owner, submission, 'tests.record', 'jobs', state,
            convert_to('[[], {{"n": ' || n || '}}, {{}}]', 'UTF8'), (ended IS NOT NULL)::int,
            (ended IS NOT NULL)::int, 30, at, at, ended, '[["queued", 0, ""]]' FROM old
    )
    INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, started_at, ended_at,
        recorded_at)
    SELECT id, 1, 1, CASE state WHEN 'succeeded' THEN state ELSE 'failed' END, at, at, ended, ended
    FROM old WHERE ended IS NOT NULL
    """


def archived(folder: Path) -> tuple[dict[str, list[dict[str, Any]]], Counter[str]]:
    """Return all lines of an archive by run; each file must be whole."""
    found: dict[str, list[dict[str, Any]]] = {}
    figures: Counter[str] = Counter()
    for path in folder.glob("*/*.ndjson.gz"):
        _first, *runs, last = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
        assert last["end"]["runs"] == len(runs), path
        figures["files"] += 1
        figures["bytes"] += path.stat().st_size
        for line in runs:
            day = datetime.fromtimestamp((UUID(line["run"]["id"]).int >> 80) / 1000, UTC)
            assert path.name.startswith(f"{day:%Y-%m-%d}"), path
            found.setdefault(line["run"]["id"], []).append(line)
    return found, figures


def is_same(line: dict[str, Any], run: Old) -> bool:
    """Say whether an archived line is this run, with its attempt and its owner."""
    row, payload = line["run"], bytes.fromhex(line["run"]["payload"][2:])
    return (
        (row["state"], line["owner"], row["submission_id"])
        == (run.state, run.owner, run.submission)
        and datetime.fromisoformat(row["ended_at"]) == run.ended_at
        and json.loads(payload) == [[], {"n": run.number}, {}]
        and [attempt["token"] for attempt in line["attempts"]] == [1]
    )


def _text(moment: datetime | None) -> str:
    return "NULL" if moment is None else f"'{moment.isoformat()}'"
