"""jobs/system/retention/archive.py and parts.py: files that are whole, written before rows go."""

import gzip
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from jobs.core import sql
from jobs.models import HistoryPart, HistoryRound, Owner
from jobs.system.retention import archive
from jobs.system.retention.reads import find_run
from jobs.system.retention.rounds import remove_old_history
from tests.jobs.system.retention.old import attempts_left, left, midnight, old_run

pytestmark = pytest.mark.usefixtures("history")

ROW = "SELECT row_to_json(r) AS row FROM jobs_run r WHERE id = %s"
ATTEMPTS = "SELECT json_agg(a ORDER BY token) AS rows FROM jobs_attempt a WHERE run_id = %s"


def test_a_run_is_read_back_whole(acme: Owner, folder: Path) -> None:
    """All columns of its row and of its attempts, byte for byte, and its owner's slug."""
    run = old_run(acme, 100)
    # Encrypted bytes are not touched: no one here has their key.
    sql.query(
        "UPDATE jobs_run SET payload = %s, payload_key = 7, result = %s WHERE id = %s",
        [bytes(range(256)), b"\x00\xff", run],
    )
    [before], [attempts] = sql.query(ROW, [run]), sql.query(ATTEMPTS, [run])
    remove_old_history()
    assert not left([run])
    found = find_run(run)
    assert found is not None
    assert found["run"] == before["row"] and found["attempts"] == attempts["rows"]
    assert found["owner"] == "acme" and found["arguments"] is None
    assert [(line["attempt"], line["text"]) for line in found["log"]] == [(1, "said")]
    assert found["file"] == str(folder / archive.file_name(midnight(100).date(), 1))
    assert bytes.fromhex(found["run"]["payload"][2:]) == bytes(range(256))


def test_a_file_has_the_runs_of_a_day_that_leave(acme: Owner, folder: Path) -> None:
    """Those that stay longer come into a second file, when they leave."""
    gone = {old_run(acme, 100), old_run(acme, 100, state="cancelled")}
    failed = old_run(acme, 100, state="failed")
    other = old_run(acme, 101)
    remove_old_history()
    assert _archived(folder, 100) == {1: gone} and _archived(folder, 101) == {1: {other}}
    sql.query("UPDATE jobs_run SET ended_at = ended_at - interval '1 year' WHERE id = %s", [failed])
    remove_old_history()
    assert not left([failed])
    assert _archived(folder, 100) == {1: gone, 2: {failed}}
    for part in HistoryPart.objects.filter(day=midnight(100).date()):
        path = folder / part.file
        assert archive.verify(path) == part.run_count == part.attempt_count
        assert path.stat().st_size == part.size_bytes


@pytest.mark.parametrize("what", ["missing", "a file", "unwritable", "full"])
def test_without_a_file_nothing_is_removed(
    acme: Owner, folder: Path, settings: Settings, monkeypatch: Any, what: str
) -> None:
    """The rows stay, and the round says why; when it works again, they leave."""
    runs = [old_run(acme, 100), old_run(acme, 100, has_partition=True)]
    lone = old_run(acme, 300, has_partition=False)
    wrong = folder / "gone"
    if what == "a file":
        wrong.write_text("")
    if what in ("missing", "a file"):
        settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ARCHIVE_FOLDER": str(wrong)}
    else:
        error = PermissionError(13, "Permission denied") if what == "unwritable" else None
        _break_fsync(monkeypatch, error or OSError(28, "No space left on device"))
    remove_old_history()
    assert left([*runs, lone]) == {*runs, lone} == attempts_left([*runs, lone])
    last = HistoryRound.objects.get()
    assert last.problem.startswith("The archive cannot be written: ")
    assert last.problem_since is not None and not HistoryPart.objects.exists()
    monkeypatch.undo()
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ARCHIVE_FOLDER": str(folder)}
    remove_old_history()
    assert not left([*runs, lone])
    assert HistoryRound.objects.get().problem == ""
    assert not list(folder.glob("*/*.part"))


def test_a_file_is_never_written_over(acme: Owner, folder: Path) -> None:
    """One that a killed round, or a database before its restore, has left keeps its runs."""
    path = folder / archive.file_name(midnight(100).date(), 1)
    path.parent.mkdir()
    path.write_bytes(b"of before")
    run = old_run(acme, 100)
    remove_old_history()
    assert path.read_bytes() == b"of before"
    assert HistoryPart.objects.get().number == 2
    found = find_run(run)
    assert found is not None and found["file"].endswith(".2.ndjson.gz")


def test_a_damaged_file_is_known(acme: Owner, folder: Path) -> None:
    """Cut short, or with another line."""
    old_run(acme, 100)
    remove_old_history()
    [path] = archive.all_files(folder)
    whole = path.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    path.write_bytes(whole[:-20])
    with pytest.raises(archive.ArchiveError, match="cannot be read"):
        archive.verify(path)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(archive.ArchiveError, match="not complete"):
        archive.verify(path)
    path.write_bytes(
        gzip.compress(b"".join([lines[0], lines[1].replace(b"jobs", b"JOBS"), lines[2]]))
    )
    with pytest.raises(archive.ArchiveError, match="damaged"):
        archive.verify(path)


def _break_fsync(monkeypatch: Any, error: OSError) -> None:
    def fsync(_descriptor: int) -> None:
        raise error

    monkeypatch.setattr("jobs.system.retention.archive.os.fsync", fsync)


def _archived(folder: Path, days_ago: int) -> dict[int, set[Any]]:
    """Return the ids of the runs of a day in the archive, by the number of the file."""
    found = {}
    for path in archive.files_of(folder, midnight(days_ago).date()):
        first, *runs, _last = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
        found[first["part"]] = {UUID(each["run"]["id"]) for each in runs}
    return found
