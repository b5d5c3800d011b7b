"""jobs/admin/jobs/file_import.py: looked at first, then confirmed, by those who may."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

import tests.tasks  # noqa: F401  registers the tasks of scenes
from jobs.core import sql
from jobs.models import AuditEntry, Job, JobImport, Owner
from tests.jobs.admin.conftest import said

pytestmark = pytest.mark.usefixtures("offered")

URL = reverse("admin:jobs_job_import")
LIST = reverse("admin:jobs_job_changelist")
MAY = ("view_job", "add_job", "change_job")
GOOD = json.dumps([{"key": "a", "task": "tests.add", "arguments": {"x": 1, "y": 2}}])
BAD = "key,task,=cmd\na,tests.add,\n"


def look(client: Client, owner: Owner, text: str) -> Any:
    """Send text; return the page that says what it would do."""
    answer = client.post(URL, {"owner": owner.pk, "text": text}, follow=True)
    assert answer.status_code == 200
    return answer


def address(answer: Any) -> str:
    return str(answer.redirect_chain[-1][0])


def test_what_it_would_do_is_shown_and_then_done(as_root: Client, acme: Owner) -> None:
    """Looking makes nothing; confirming makes the jobs once, and is audited."""
    assert URL in as_root.get(LIST).content.decode()
    answer = look(as_root, acme, GOOD)
    assert "1 to be created" in answer.content.decode()
    assert not Job.objects.exists()
    done = as_root.post(address(answer), follow=True)
    assert said(done) == ["Imported: 1 created, 0 changed, 0 as they were."]
    assert (Job.objects.get().key, AuditEntry.objects.get().action) == ("a", "import jobs")
    # A double click, or the way back: it is done.
    assert as_root.post(address(answer)).status_code == 404
    assert not JobImport.objects.exists()


def test_every_wrong_row_is_shown(as_root: Client, acme: Owner) -> None:
    """On the page and as CSV, in which no cell is a formula; and nothing can be confirmed."""
    rows = [{"key": "<b>", "task": "tests.add"}, {"key": "b", "task": "tests.ad", "priority": 11}]
    answer = look(as_root, acme, json.dumps(rows))
    page = answer.content.decode()
    assert "2 of 2 rows are wrong" in page and "<b>" not in page
    assert answer.context["report"].upserted is None
    as_root.post(address(answer))
    assert not Job.objects.exists()
    table = as_root.get(address(look(as_root, acme, BAD)) + "problems.csv")
    assert list(csv.reader(io.StringIO(table.content.decode()))) == [
        ["row", "field", "problem"],
        ["1", "'=cmd", "is unknown"],
    ]


@pytest.mark.parametrize(
    "given",
    [{}, {"text": GOOD, "file": SimpleUploadedFile("a.csv", b"x")}, {"text": "\x00"}],
)
def test_a_file_or_text_is_wanted(as_root: Client, acme: Owner, given: dict[str, Any]) -> None:
    """One of them."""
    answer = as_root.post(URL, {"owner": acme.pk, **given})
    assert answer.status_code == 200 and answer.context["form"].errors
    assert not JobImport.objects.exists()


def test_only_who_may_make_and_change_jobs_may_import(
    acme: Owner, northwind: Owner, person: Callable[..., Client]
) -> None:
    """For the owners of whom they are admins; others' imports do not exist."""
    admin = person("ann", *MAY, acme="admin", northwind="operator")
    assert URL in admin.get(LIST).content.decode()
    refused = admin.post(URL, {"owner": northwind.pk, "text": GOOD})
    assert refused.context["form"].errors.keys() == {"owner"}
    mine = address(look(admin, acme, GOOD))
    other = person("bob", *MAY, acme="admin")
    for url in (mine, f"{mine}problems.csv"):
        assert other.get(url).status_code == 404
    for name, permissions, role in (("cy", MAY[:2], "admin"), ("di", MAY, "operator")):
        client = person(name, *permissions, acme=role)
        assert URL not in client.get(LIST).content.decode()
        assert client.get(URL).status_code == client.get(mine).status_code == 403
    assert Client().get(URL).status_code == 302


def test_a_person_has_one_open_import(as_root: Client, acme: Owner) -> None:
    """A new file takes the place of the one before; beside one that is being read it is refused."""
    first = address(look(as_root, acme, GOOD))
    second = address(look(as_root, acme, GOOD))
    assert (as_root.get(first).status_code, as_root.get(second).status_code) == (404, 200)
    JobImport.objects.update(report=None)
    refused = as_root.post(URL, {"owner": acme.pk, "text": GOOD})
    assert refused.status_code == 400
    assert "is being read" in refused.content.decode()
    assert as_root.get(second).status_code == 404
    sql.query("UPDATE jobs_jobimport SET created_at = now() - interval '11 minutes'")
    assert as_root.get(address(look(as_root, acme, GOOD))).status_code == 200
    assert JobImport.objects.count() == 1


@pytest.mark.parametrize(
    "text",
    [
        r'[{"key": "a", "task": "tests.add", "\ud800": 1}]',
        r'[{"key": "a", "task": "tests.add", "arguments": {"\ud800": 1}}]',
        r'[{"key": "a", "task": "tests.add", "labels": {"\udfff": "x"}}]',
        'key,task,arguments\na,tests.add,"{""\\ud800"": 1}"\n',
    ],
)
def test_a_lone_surrogate_in_a_name_is_refused(as_root: Client, acme: Owner, text: str) -> None:
    """No page can show one, and no row hold it: the answer is a refusal, and not an error."""
    answer = as_root.post(URL, {"owner": acme.pk, "text": text})
    if answer.status_code == 302:
        answer = as_root.get(answer.url)
        assert "surrogate" in answer.content.decode()
    else:
        assert answer.status_code == 400 and "surrogate" in answer.content.decode()
    assert not Job.objects.exists()
