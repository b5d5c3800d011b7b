"""The canary: secrets of runs go through a whole installation, and are looked for everywhere.

They are an argument, a result, a line of a log, the text of an error and a target's name; the runs
succeed, fail, are retried, send a request, and wait. The same search finds what was given in clear.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.management.stack import programs
from jobs.management.stack.stack import free_port
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
    hooks,
)
from tests.flows.installation import installed
from tests.jobs.keys import KEY_1
from tests.waiting import wait_for

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A whole installation with a key ring: web, workers, system worker, beat and Flower."""
    folder = tmp_path_factory.mktemp("canary")
    (folder / "archive").mkdir()
    with installed(folder, runs=False) as here, hooks() as hook:
        given = {
            "FAIRSHIFT_ENCRYPTION_KEYS": KEY_1,
            "FAIRSHIFT_TASKS": "tests.tasks,tests.flows.tasks,tests.flows.traced",
            "FAIRSHIFT_OFFERED_TASKS": "tests.*,flows.*,fairshift.*",
            "FAIRSHIFT_HTTP_ALLOWED_HOSTS": hook,
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
            yield Scene(
                here, f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}", hook, given
            )
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

    assert _found(CLEAR, everything) >= {
        *("redis", "snapshot", "events", "logs", "dump", "backup", "files of postgresql"),
        *(f"flower {TABLE}", "flower /api/tasks"),
    }
    for secret in (ARGUMENT, RESULT, LOCAL):
        assert _found(secret, everything) == set(), secret[:8]
    # OpenTelemetry's instrumentation records exceptions; docs/operate/logs.md says so.
    assert _found(ERROR, everything) == {"spans"}
    # Once, as before: what a task logs also goes where its worker logs.
    assert _found(LOGGED, everything) == {"logs"}
    assert everything["logs"].count(LOGGED.encode()) == 1
    # Names of targets are columns that statements search.
    in_rows = {"dump", "backup", "files of postgresql"}
    assert _found(TARGET, everything) <= in_rows, TARGET[:8]

    _look_at_pages(scene)

    [system] = [each for each in scene.here.started if each.name == "system"]
    system.kill()
    scene.here.run(AGED, **scene.given)
    archived = leaks.files_below(scene.here.folder / "archive")
    assert scene.runs["fails"][14:].encode() in archived
    assert _found(TARGET, {"archive": archived}) == set()
    for secret in (ARGUMENT, RESULT, ERROR, LOGGED):
        assert _found(secret, {"archive": archived}) == set(), secret[:8]


def _found(secret: str, everything: Mapping[str, bytes]) -> set[str]:
    return leaks.places_of(secret, everything)


def _play(scene: Scene) -> None:
    """Have runs end in each way, and wait in each."""
    hook, fails = f"http://{scene.hook}/{ARGUMENT}", f"http://{scene.hook}/fails/{ARGUMENT}"
    scene.submit("succeeds", "flows.secret", arguments={"value": ARGUMENT})
    scene.submit("fails", "flows.secret", arguments={"value": ERROR, "fails": True})
    scene.submit(
        "retried", "flows.secret", arguments={"value": ERROR, "fails": True}, max_attempts=3
    )
    scene.submit("asks", "fairshift.http_request", arguments={"method": "GET", "url": hook})
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
        assert _found(secret, seen), secret[:8]
    # Only a frame had it.
    assert any(b"in break_with_locals" in data for data in seen.values())
    assert _found(LOCAL, seen) == set()
    shown = scene.shown_to("reader") | scene.answers_to("reader")
    assert not any(b"in break_with_locals" in data for data in shown.values())
    for secret in (ARGUMENT, RESULT, ERROR, LOGGED):
        assert _found(secret, shown) == set(), secret[:8]
    foreign = scene.shown_to("stranger") | scene.answers_to("stranger")
    for secret in (ARGUMENT, RESULT, ERROR, TARGET, LOGGED):
        assert _found(secret, foreign) == set(), secret[:8]
