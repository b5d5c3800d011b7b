"""A project that has lived with Celery and beat takes Fairshift in: the same work is done.

It has split settings, users with an e-mail login, queues and routes of its own, results, chords and
18 PeriodicTasks. It runs on Debian's servers twice at the same time: on stock Celery, and with
Fairshift after `import-beat`. What ran is read from a file that its tasks write.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.commands import Done, ran
from tests.debian import debian_servers
from tests.docs.pages import PROJECT
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

BIN = Path(sys.executable).parent
STOCK = (
    "celery -A crm worker -Q celery,mail,reports --concurrency 2",
    "celery -A crm beat",
)
OURS = ("python manage.py fleet run --concurrency 2",)
MINUTELY = {
    "each minute",
    "each minute in mails",
    "each minute of workdays",
    "each minute with a priority",
    "each minute in its queue",
    "each minute, or not at all",
    "close of the day",
    "close of the day: total",
    "close of the day: chain",
}
SECONDS = {"each 10 s": 10, "each 15 s": 15, "each 20 s": 20}
EXPECTED = {*MINUTELY, *SECONDS, "once"}
TIMES = 3
"""How often each interval is seen."""


class Crm:
    """The project in a folder of its own, with its database and its database of Redis."""

    def __init__(self, folder: Path, urls: dict[str, str], *, name: str, number: int) -> None:
        self.folder, self.record = folder / name, folder / f"{name}.record"
        shutil.copytree(Path(__file__).parent / "project", self.folder)
        with psycopg.connect(urls["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        self.environ = {
            **{key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ},
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": f"{self.folder}:{PROJECT}",
            "CRM_DATABASE": name,
            "CRM_PORT": str(urlsplit(urls["DATABASE_URL"]).port),
            "CRM_RECORD": str(self.record),
            "CELERY_BROKER_URL": urls["REDIS_URL"].removesuffix("/0") + f"/{number}",
        }
        if name == "ours":
            self.environ |= {"WITH_FAIRSHIFT": "1", "FAIRSHIFT_TEMPLATES": f"{PROJECT}/templates"}
        self.manage("makemigrations people")
        self.manage("migrate -v 0")

    def manage(self, line: str, *more: str) -> Done:
        """Run a command of manage.py, which ends well."""
        words = ["python", "manage.py", *line.split(), *more]
        done = ran(*words, folder=self.folder, environ=self.environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def shell(self, code: str) -> str:
        """Return what code prints in the project's shell."""
        return self.manage("shell -v 0 -c", code).stdout

    @contextmanager
    def running(self, *lines: str) -> Iterator[None]:
        """Run processes, each with a log; they end by SIGTERM."""
        with ExitStack() as ending:
            started = []
            for number, line in enumerate(lines):
                log = ending.enter_context((self.folder / f"{number}.log").open("wb"))
                started.append(
                    subprocess.Popen(
                        line.split(), cwd=self.folder, env=self.environ, stdout=log, stderr=log
                    )
                )
            try:
                yield
            finally:
                for process in started:
                    process.send_signal(signal.SIGTERM)
                statuses = [process.wait(200) for process in started]
        assert statuses == [0] * len(lines), self.logs()

    def logs(self) -> str:
        return "\n".join(log.read_text(errors="replace") for log in self.folder.glob("*.log"))

    def done(self) -> list[dict[str, Any]]:
        """Return what its tasks have noted."""
        text = self.record.read_text() if self.record.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def has_done_all(self) -> bool:
        """Say whether each entry that is due soon has run, and each interval some times."""
        counts = Counter(row["entry"] for row in self.done())
        return counts.keys() >= EXPECTED and all(counts[name] >= TIMES for name in SECONDS)


def test_the_same_work_is_done_as_before(tmp_path: Path) -> None:
    """Every entry that runs on stock runs here, with the same arguments and by the same queue."""
    with debian_servers() as urls:
        stock = Crm(tmp_path, urls, name="stock", number=1)
        ours = Crm(tmp_path, urls, name="ours", number=0)
        _may_be_deployed(ours)
        ours.shell("from jobs.models import Owner\nOwner.objects.create(slug='crm')")
        began_at = time.monotonic()
        for crm in (stock, ours):
            crm.shell("import entries")
        _takes_over(ours)
        with stock.running(*STOCK), ours.running(*OURS):
            for crm in (stock, ours):
                wait_for(crm.has_done_all, seconds=150, what=f"{crm.folder.name} to do it all")
        seconds = time.monotonic() - began_at
        assert _calls(ours) == _calls(stock), ours.logs()[-5000:]
        for crm in (stock, ours):
            counts = Counter(row["entry"] for row in crm.done())
            assert counts.keys() == EXPECTED
            assert counts["once"] == 1
            for name, period in SECONDS.items():
                assert counts[name] <= seconds / period + 1
            assert max(counts[name] for name in MINUTELY) <= seconds / 60 + 1
        _shows_them(ours)


def _may_be_deployed(crm: Crm) -> None:
    """`check --deploy` finds no error; the settings are split, and the project's own."""
    said = crm.manage("check --deploy --fail-level ERROR").stderr
    assert "fairshift.E" not in said
    listed = json.loads(crm.manage("fleet settings --json").stdout)["settings"]
    settings = {row["name"]: (row["value"], row["set_by"]) for row in listed}
    assert settings["task_time_limit"] == ("60", "project")
    queues = set(settings["task_queues"][0].split(", "))
    assert queues == {"celery", "mail", "reports", "jobs", "system", "notices"}


def _takes_over(crm: Crm) -> None:
    """The import names each entry, and why one stays with beat."""
    report = json.loads(crm.manage("fleet import-beat --owner crm --json").stdout)["entries"]
    verdicts = {row["name"]: (row["verdict"], row["field"]) for row in report if not row["is_ours"]}
    assert len(verdicts) == 18
    stay = {name: told for name, told in verdicts.items() if told[0] != "imported"}
    assert stay.keys() == {"per tenant", "switched off", "over"}, stay
    assert all(row["attempts"] == 1 for row in report if row["verdict"] == "imported")


def _calls(crm: Crm) -> set[str]:
    """Return what has run: entry, task, arguments and queue, whose default one has another name."""
    rows = [{**row, "queue": row["queue"].replace("celery", "jobs")} for row in crm.done()]
    return {json.dumps(row, sort_keys=True) for row in rows}


def _shows_them(crm: Crm) -> None:
    """A person with an e-mail login sees the runs."""
    code = (
        "from crm.people.models import Person\nfrom django.test import Client\n"
        "from jobs.models import Run\n"
        "person = Person(email='ann@crm.example', is_staff=True, is_superuser=True)\n"
        "person.set_password('secret')\nperson.save()\n"
        "client = Client(headers={'host': 'localhost'})\n"
        "assert client.login(email='ann@crm.example', password='secret')\n"
        "page = client.get('/fairshift/runs/')\n"
        "print(page.status_code, 'invoice' in page.content.decode())\n"
        "print(Run.objects.failed().count())\n"
    )
    assert crm.shell(code).split() == ["200", "True", "0"]
