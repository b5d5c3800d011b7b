"""The canary: secrets of runs go through a whole installation, and are looked for everywhere.

They are an argument, a result, a line of a log, the text of an error and a target's name; the runs
succeed, fail, are retried, send a request, and wait. The same search finds what was given in clear.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fleet.stack import programs
from fleet.stack.stack import free_port
from tests.flows import leaks
from tests.flows.canary import (
    AGED,
    ARGUMENT,
    CLEAR,
    ERROR,
    IN_CLEAR,
    LOCAL,
    LOGGED,
    RESULT,
    TABLE,
    TARGET,
    TOKENS,
    Scene,
)
from tests.flows.installation import installed
from tests.flows.leaks import places_of
from tests.jobs.keys import KEY_1
from tests.receivers import receiver
from tests.waiting import wait_for

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A whole installation with a key ring: web, workers, system worker, beat and Flower."""
    folder = tmp_path_factory.mktemp("canary")
    (folder / "archive").mkdir()
    with (
        installed(folder, runs=False) as here,
        receiver(200, answer=RESULT) as works,
        receiver(500, answer=RESULT) as fails,
    ):
        given = {
            "FAIRSHIFT_ENCRYPTION_KEYS": KEY_1,
            "FAIRSHIFT_TASKS": "tests.tasks,tests.flows.tasks,tests.flows.traced",
            "FAIRSHIFT_OFFERED_TASKS": "tests.*,flows.*,fairshift.*",
            "FAIRSHIFT_HTTP_ALLOWED_HOSTS": f"{works.place},{fails.place}",
            "FAIRSHIFT_ARCHIVE_FOLDER": str(folder / "archive"),
            "ALLOWED_HOSTS": "127.0.0.1,testserver",
            "LOG_LEVEL": "DEBUG",
            # Some runs wait, and their streams are not to.
            "FAIRSHIFT_API_STREAM_SECONDS": "1",
        }
        ports = free_port(0), free_port(0)
        here.start(programs.web(port=ports[0], processes=1), **given)
        here.start(programs.flower(port=ports[1], user="ann", password="secret"), **given)
        for name in ("one", "two"):
            here.start_worker(name, **given, SPANS=str(folder / f"spans-{name}"))
        here.start_system_and_beat(**given)
        here.ready(seconds=90)
        try:
            site, flower = (f"http://127.0.0.1:{port}" for port in ports)
            yield Scene(here, site, flower, works, fails, given)
        finally:
            here.stop()


def test_no_secret_of_a_run_leaves_its_place(canary: Scene, tmp_path: Path) -> None:
    """What was given in clear is found in each place, so the search works; a secret in none."""
    scene = canary
    for line in scene.here.run(TOKENS, **scene.given).splitlines():
        kind, _, rest = line.partition(" ")
        if kind in ("token", "session"):
            name, _, value = rest.partition(" ")
            (scene.tokens if kind == "token" else scene.sessions)[name] = value
    client = scene.here.servers.client()
    with leaks.heard(client) as events:
        _play(scene)
        everything = _stored(scene, client, tmp_path)
        everything["events"] = b"\n".join(events)
    everything |= scene.shown_by_flower()
    everything["metrics"] = leaks.page(
        f"{scene.site}/metrics", Authorization=f"Bearer {scene.tokens['metrics']}"
    )
    assert b"fairshift_info" in everything["metrics"]

    assert places_of(CLEAR, everything) >= {
        *("redis", "snapshot", "events", "logs", "dump", "backup", "files of postgresql"),
        *(f"flower {TABLE}", "flower /api/tasks"),
    }
    _assert_in_none(everything, ARGUMENT, RESULT, LOCAL)
    # OpenTelemetry's instrumentation records exceptions; docs/operate/logs.md says so.
    assert places_of(ERROR, everything) == {"spans"}
    # Once, as before: what a task logs also goes where its worker logs.
    assert places_of(LOGGED, everything) == {"logs"}
    assert everything["logs"].count(LOGGED.encode()) == 1
    # Names of targets are columns that statements search.
    in_rows = {"dump", "backup", "files of postgresql"}
    assert places_of(TARGET, everything) <= in_rows, TARGET[:8]

    _look_at_pages(scene)

    [system] = [each for each in scene.here.started if each.name == "system"]
    system.kill()
    scene.here.run(AGED, **scene.given)
    archived = leaks.files_below(scene.here.folder / "archive")
    assert scene.runs["fails"][14:].encode() in archived
    _assert_in_none({"archive": archived}, ARGUMENT, RESULT, ERROR, LOGGED, TARGET)


def _assert_in_none(places: Mapping[str, bytes], *secrets: str) -> None:
    for secret in secrets:
        assert places_of(secret, places) == set(), secret[:8]


def _play(scene: Scene) -> None:
    """Have runs end in each way, and wait in each."""
    works, fails = f"{scene.works.url}/{ARGUMENT}", f"{scene.fails.url}/{ARGUMENT}"
    scene.submit("succeeds", "flows.secret", arguments={"value": ARGUMENT})
    scene.submit("fails", "flows.secret", arguments={"value": ERROR, "fails": True})
    scene.submit(
        "retried", "flows.secret", arguments={"value": ERROR, "fails": True}, max_attempts=3
    )
    scene.submit("asks", "fairshift.http_request", arguments={"method": "GET", "url": works})
    scene.submit("is refused", "fairshift.http_request", arguments={"method": "GET", "url": fails})
    scene.submit("breaks", "flows.break_with_locals", arguments={"value": ARGUMENT})
    scene.submit("logs", "flows.log_secret", arguments={"backwards": LOGGED[::-1]})
    scene.submit("waits", "flows.secret", arguments={"value": ARGUMENT}, countdown=9_999)
    scene.submit("is queued", "flows.secret", token="paused", arguments={"value": ARGUMENT})
    for name in ("succeeds", "fails", "retried", "asks", "is refused", "breaks", "logs"):
        wait_for(lambda name=name: scene.is_ended(name), seconds=60, what=f"{name} to end")
    states = dict(scene.here.servers.sql("SELECT id::text, state FROM jobs_run"))
    assert [states[scene.runs[name]] for name in ("succeeds", "fails", "retried", "asks")] == [
        *("succeeded", "failed", "failed", "succeeded")
    ]
    in_clear = {**scene.given, "FAIRSHIFT_ENCRYPTION_KEYS": ""}
    scene.here.run(IN_CLEAR.format(secret=CLEAR), **in_clear)
    said = "SELECT count(*) FROM jobs_run WHERE task = 'flows.say' AND ended_at IS NOT NULL"
    wait_for(lambda: scene.here.count(said) == 1, seconds=60, what="the run in clear")


def _stored(scene: Scene, client: Any, folder: Path) -> dict[str, bytes]:
    """Return what the servers and the processes have stored, by place."""
    [(data,)] = scene.here.servers.sql("SHOW data_directory")
    scene.here.statement("CHECKPOINT")
    logs = b"".join(process.log.read_bytes() for process in scene.here.started)
    spans = b"".join(path.read_bytes() for path in scene.here.folder.glob("spans-*"))
    assert b"run/flows.secret" in spans
    return {
        "redis": leaks.keys_of(client),
        "snapshot": leaks.snapshot_of(client),
        "logs": logs,
        "spans": spans,
        "files of postgresql": leaks.files_below(Path(str(data))),
        **leaks.dumps_of(scene.here.urls["DATABASE_URL"], folder),
    }


def _look_at_pages(scene: Scene) -> None:
    """Callers that may see arguments see all but locals; others none, and a stranger no target."""
    seen = scene.shown_to("seer") | scene.answers_to("submitter")
    for secret in (ARGUMENT, RESULT, ERROR, TARGET, LOGGED):
        assert places_of(secret, seen), secret[:8]
    # Only a frame had it.
    assert any(b"in break_with_locals" in data for data in seen.values())
    _assert_in_none(seen, LOCAL)
    shown = scene.shown_to("reader") | scene.answers_to("reader")
    assert not any(b"in break_with_locals" in data for data in shown.values())
    _assert_in_none(shown, ARGUMENT, RESULT, ERROR, LOGGED)
    foreign = scene.shown_to("stranger") | scene.answers_to("stranger")
    _assert_in_none(foreign, ARGUMENT, RESULT, ERROR, TARGET, LOGGED)
