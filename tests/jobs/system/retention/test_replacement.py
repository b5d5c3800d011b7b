"""jobs/system/retention/replacement.py: partitions are replaced beside other work."""

from typing import Any
from uuid import UUID

import pytest

from jobs.core import sql
from jobs.models import HistoryRound, Owner
from jobs.system.retention import replacement
from jobs.system.retention.rounds import remove_old_history
from tests.jobs.scenes import open_transaction
from tests.jobs.system.retention.old import left, old_run

pytestmark = pytest.mark.usefixtures("history")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round gives up at once."""
    monkeypatch.setattr(replacement, "TRIES", 2)
    monkeypatch.setattr(replacement, "PAUSE_SECONDS", 0.01)


@pytest.mark.usefixtures("impatient")
def test_a_partition_in_use_stays_until_later(acme: Owner) -> None:
    """A round gives up, says so, and the next one succeeds; no statement waits behind it."""
    gone = old_run(acme, 100)
    with open_transaction("SELECT FROM jobs_run WHERE id = %s FOR UPDATE", gone):
        remove_old_history()
        assert left([gone]) == {gone}
        last = HistoryRound.objects.get()
        assert "is in use" in last.problem and last.problem_since is not None
    remove_old_history()
    assert not left([gone])
    assert HistoryRound.objects.get().problem == ""


REOPEN = "UPDATE jobs_run SET state = 'queued', ended_at = NULL WHERE id = %s"
ADVANCE = "UPDATE jobs_run SET state = 'admitted', token = 9 WHERE id = %s"


@pytest.mark.parametrize("moment", ["_parts", "_copy"])
def test_what_changes_meanwhile_is_not_lost(acme: Owner, monkeypatch: Any, moment: str) -> None:
    """A run that is reopened, moved or stored while its partition is replaced stays as it is."""
    reopened, moved = old_run(acme, 100), old_run(acme, 100, state="queued")
    others = [old_run(acme, 100), old_run(acme, 100, state="failed")]
    made: list[UUID] = []
    real = getattr(replacement, moment)

    def meanwhile(table: Any, *given: Any) -> Any:
        found = real(table, *given)
        if table.name == "jobs_run":
            sql.query(REOPEN, [reopened])
            sql.query(ADVANCE, [moved])
            made.append(old_run(acme, 100, has_partition=False))
        return found

    monkeypatch.setattr(replacement, moment, meanwhile)
    remove_old_history()
    assert left([reopened, moved, *others, *made]) == {reopened, moved, others[1], *made}
    rows = sql.query(
        "SELECT id, state, token FROM jobs_run WHERE id = ANY(%s)", [[reopened, moved]]
    )
    found = {row["id"]: (row["state"], row["token"]) for row in rows}
    assert found == {reopened: ("queued", 1), moved: ("admitted", 9)}
