"""A project that has lived with Celery and beat takes Fairshift in: the same work is done.

It has split settings, users with an e-mail login, queues and routes of its own, results, chords and
18 PeriodicTasks. It runs on Debian's servers twice at the same time: on stock Celery, and with
Fairshift after `import-beat`. What ran is read from a file that its tasks write.
"""

import json
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.debian import debian_servers
from tests.lived_in.crm import EXPECTED, MINUTELY, OURS, SECONDS, STOCK, Crm
from tests.waiting import wait_for

pytestmark = pytest.mark.proof


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
    rows = [{**row, "at": 0, "queue": row["queue"].replace("celery", "jobs")} for row in crm.done()]
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
