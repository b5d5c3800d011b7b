"""A database restored to a snapshot T, with an empty Redis (G23): what it has ends, no more runs.

The judge is the tasks' own log, outside of both databases.
"""

from pathlib import Path
from typing import Any
from uuid import UUID

from tests.flows.installation import ENDED, Installation, installed
from tests.flows.processes import Processes
from tests.flows.servers import Servers, own_servers, postgres_program
from tests.judge import read_submit_events, read_task_events
from tests.waiting import wait_for

ROWS = "SELECT id, state, ended_at IS NULL AS is_open, token FROM jobs_run"


class Restored(Installation):
    """An installation whose database is there already."""

    def __init__(self, folder: Path, servers: Servers) -> None:
        Processes.__init__(self, folder)
        self.servers = servers
        self.urls = {"DATABASE_URL": servers.postgres.url, "REDIS_URL": servers.redis.url}


def rows(servers: Servers) -> dict[str, Any]:
    """Return all runs by id: state, whether it is open, token."""
    found = servers.sql(ROWS)
    return {str(run_id): (state, is_open, token) for run_id, state, is_open, token in found}


def started(installation: Installation) -> list[str]:
    """Return the runs whose bodies have begun, each as often, in order."""
    events = read_task_events(installation.tasks.path)
    return [str(one.run) for one in events if one.event == "start"]


def submitted(installation: Installation) -> set[str]:
    """Return the runs of which their submitter knows that they are committed."""
    events = read_submit_events(installation.folder / "submits.log")
    return {run_id for one in events if one.event == "ok" for run_id in one.ids}


def test_a_restored_database_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    """Dumped under load, everything killed, restored elsewhere, with an empty Redis."""
    file = tmp_path / "fairshift.dump"
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    with installed(tmp_path / "before") as before:
        steady = before.submitter("--count", "2000", "--pause", "0.02", "--seconds", "0.1")
        wait_for(lambda: before.count(ENDED) > 30, seconds=60, what="work under way")
        url = before.urls["DATABASE_URL"]
        postgres_program("pg_dump", "--format=custom", f"--file={file}", url)
        dumped = before.count(ENDED)
        wait_for(lambda: before.count(ENDED) > dumped + 30, seconds=60, what="work after the dump")
        for name in ("one", "two", "system", "beat"):
            before.stack.kill_group(name)
        steady.kill()
        known = submitted(before)
        ended_later = rows(before.servers)

    with own_servers() as servers:
        # A dump has no roles: it is restored as docs/operate/backup.md says.
        after = Restored(tmp_path / "after", servers)
        after.statement("CREATE ROLE fairshift_tenant NOLOGIN")
        url = after.urls["DATABASE_URL"]
        postgres_program("pg_restore", "--exit-on-error", f"--dbname={url}", str(file))
        snapshot = rows(servers)
        assert len(servers.client().keys()) == 0
        with after.running():
            after.drained(seconds=90)
            begun = started(after)
            ended = rows(servers)

    is_open = {run_id for run_id, (_state, open_then, _token) in snapshot.items() if open_then}
    # The scene means something: T is in the middle, with open runs and with ended ones.
    assert is_open and len(snapshot) > len(is_open)
    lost = known - snapshot.keys()
    assert lost, "nothing was submitted after T"
    assert {one for one in is_open if not ended_later[one][1]}, "nothing ended after T"

    assert set(begun) == is_open, "what was open at T runs, and nothing else"
    assert ended.keys() == snapshot.keys()
    assert {state for state, _open, _token in ended.values()} == {"succeeded"}
    unchanged = {one: fact for one, fact in snapshot.items() if one not in is_open}
    assert {one: ended[one] for one in unchanged} == unchanged
    assert len(begun) == len(is_open), "each once: no lease was lost after the restore"
    assert all(UUID(one) for one in begun)
