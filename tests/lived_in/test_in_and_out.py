"""A project that has lived with Celery and beat takes Fairshift in, and leaves it again.

By the order of docs/start/from-celery.md. The project has split settings, users with an e-mail
login, queues and routes of its own, results, chords and 18 PeriodicTasks, and runs on Debian's
servers. What ran is read from a file that its tasks write.
"""

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.debian import debian_servers
from tests.lived_in.crm import MINUTELY, OURS, SECONDS, STOCK, Crm
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

CATALOGUE = """
SELECT 'class ' || relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
UNION ALL SELECT 'schema ' || nspname || coalesce(nspacl::text, '') FROM pg_namespace
    WHERE nspname NOT LIKE 'pg\\_%'
UNION ALL SELECT 'role ' || rolname FROM pg_roles
UNION ALL SELECT 'setting ' || setconfig::text FROM pg_db_role_setting
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'event trigger ' || evtname FROM pg_event_trigger
UNION ALL SELECT 'extension ' || extname FROM pg_extension
UNION ALL SELECT 'model ' || app_label || model FROM django_content_type
UNION ALL SELECT 'permission ' || codename FROM auth_permission
UNION ALL SELECT 'migration ' || app || name FROM django_migrations
UNION ALL SELECT 'interval ' || every || period FROM django_celery_beat_intervalschedule
UNION ALL SELECT 'crontab ' || id FROM django_celery_beat_crontabschedule
ORDER BY 1
"""
"""What a database knows of, but for rows of the project."""
ENTRIES = """
SELECT name, to_jsonb(p) - '{id,name,enabled,last_run_at,total_run_count,date_changed}'::text[]
FROM django_celery_beat_periodictask AS p ORDER BY name
"""
DUE = """
import json
from django_celery_beat.models import PeriodicTask
from fleet.beat.due import due_after
names = ("each hour", "nightly", "monthly")
rows = PeriodicTask.objects.filter(name__in=names, enabled=True)
print(json.dumps({row.name: str(due_after(row.schedule, row.last_run_at))[:19] for row in rows}))
"""
CALLS = """
from crm.billing.tasks import invoice
from jobs import submit
invoice.apply_async((9,), {"entry": "soon"}, countdown=60)
invoice.apply_async((9,), {"entry": "far"}, countdown=86_400)
submit(invoice, 9, entry="durable", owner="crm", countdown=10)
"""
TRACES = re.compile(r"fairshift|(^|\.)(jobs|system|notices|inbox)($|\W)")


class Calendar:
    """The minutes in which a beat ran, and those between two beats."""

    def __init__(self, crm: Crm) -> None:
        self.crm, self.begun_at, self.stopped_at = crm, time.time(), time.time()
        self.most = self.least = 0

    @contextmanager
    def running(self, *lines: str) -> Iterator[None]:
        """Run processes. One send stands for all due times while no beat ran."""
        began_at, count = time.time(), len(self.crm.done())
        with self.crm.running(*lines):
            wait_for(lambda: len(self.crm.done()) > count, seconds=120)
            first = self.crm.done()[count]["at"]
            self.most -= max(_minutes(self.stopped_at, began_at) - 1, 0)
            self.least -= max(_minutes(self.stopped_at, first) - 1, 0)
            yield
            # What was due has run, and nothing is due while they stop.
            wait_for(lambda: 25 < time.time() % 60 < 40, seconds=90)
            self.stopped_at = time.time()

    @property
    def expected(self) -> range:
        """How often an entry of each minute has run."""
        minutes = _minutes(self.begun_at, self.stopped_at)
        return range(minutes + self.least, minutes + self.most + 1)


def _minutes(start: float, end: float) -> int:
    return int(end // 60) - int(start // 60)


def test_in_and_out_again(tmp_path: Path) -> None:
    """The same work goes on, none is done twice or lost, and the servers are as before.

    Each due time is sent once, whoever sends it, with the same arguments and by the same queue.
    """
    with debian_servers() as urls:
        crm = Crm(tmp_path, urls, name="crm", number=0)
        crm.shell("import entries")
        time_of = Calendar(crm)
        with time_of.running(*STOCK):
            _see_each_minute(crm)
        on_stock = crm.done()
        before = {sql: _rows(crm, sql) for sql in (CATALOGUE, ENTRIES)}
        due = json.loads(crm.shell(DUE))
        assert due.keys() == {"each hour", "nightly", "monthly"}

        crm.has_fairshift = True
        crm.manage("migrate -v 0")
        crm.shell("from jobs.models import Owner\nOwner.objects.create(slug='crm')")
        _may_be_deployed(crm)
        with time_of.running(*OURS):
            crm.manage("fleet import-beat --owner crm --plan")
            _takes_over(crm)
            _see_each_minute(crm)
            assert _calls(crm.done()[len(on_stock) :]) == _calls(on_stock), crm.logs()[-5000:]
            _shows_them(crm)
            crm.shell(CALLS)
            assert "would export" in crm.manage("fleet leave --plan").stdout
            leaving = _leave(crm)
        assert leaving.wait(1_200) == 0, crm.logs()
        _is_gone(crm, urls["REDIS_URL"])

        crm.has_fairshift = False
        assert {sql: _rows(crm, sql) for sql in before} == before
        assert json.loads(crm.shell(DUE)) == due
        crm.manage("check")
        with time_of.running(*STOCK):
            _see_each_minute(crm)
            wait_for(lambda: _counts(crm)["soon"], seconds=120)
        counts = _counts(crm)
        for name in MINUTELY:
            assert counts[name] in time_of.expected, (name, counts, time_of.expected)
        assert [counts[name] for name in ("once", "soon", "durable", "far")] == [1, 1, 1, 0]
        seconds = time_of.stopped_at - time_of.begun_at
        for name, period in SECONDS.items():
            assert counts[name] <= seconds / period + 3


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
    """The import names each entry, and why one stays with beat; `once` has run before."""
    report = json.loads(crm.manage("fleet import-beat --owner crm --json").stdout)["entries"]
    verdicts = {row["name"]: (row["verdict"], row["field"]) for row in report if not row["is_ours"]}
    assert len(verdicts) == 18
    stay = {name: told for name, told in verdicts.items() if told[0] != "imported"}
    assert stay.keys() == {"per tenant", "switched off", "over", "once"}, stay
    assert all(row["attempts"] == 1 for row in report if row["verdict"] == "imported")


def _calls(done: list[dict[str, Any]]) -> set[str]:
    """Return what has run: entry, task, arguments and queue, whose default one has another name."""
    rows = [{**row, "at": 0, "queue": row["queue"].replace("celery", "jobs")} for row in done]
    return {json.dumps(row, sort_keys=True) for row in rows if row["entry"] != "once"}


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


def _counts(crm: Crm) -> Counter[str]:
    return Counter(row["entry"] for row in crm.done())


def _see_each_minute(crm: Crm) -> None:
    """Wait until each entry has run once more; an hour is not over meanwhile."""
    before = _counts(crm)
    names = [*MINUTELY, *SECONDS]
    wait_for(lambda: all((_counts(crm) - before)[name] for name in names), seconds=150)


def _leave(crm: Crm) -> subprocess.Popen[bytes]:
    """Begin to leave; return when all work is done, and the processes are to be stopped."""
    words = ["python", "manage.py", "fleet", "leave", "--erase", "--no-input", "--timeout", "1000"]
    log = crm.folder / "leave.log"
    with log.open("wb") as output:
        leaving = subprocess.Popen(
            words, cwd=crm.folder, env=crm.environ, stdout=output, stderr=output
        )
    wait_for(lambda: "All work is done" in log.read_text(), seconds=120)
    return leaving


def _is_gone(crm: Crm, url: str) -> None:
    """Redis has no trace of Fairshift; the call that is not due waits for a stock worker."""
    client = redis.Redis.from_url(url)
    keys = [key.decode() for key in client.scan_iter()]
    assert not list(filter(TRACES.search, keys)), keys
    waiting = [json.loads(raw)["headers"]["kwargsrepr"] for raw in client.lrange("celery", 0, -1)]
    assert any("far" in text for text in waiting)


def _rows(crm: Crm, statement: str) -> list[Any]:
    facts: dict[str, Any] = {"dbname": crm.environ["CRM_DATABASE"], "port": crm.environ["CRM_PORT"]}
    with psycopg.connect(host="127.0.0.1", user="app", **facts) as connection:
        return connection.execute(statement).fetchall()
