"""jobs/definitions/file_import.py: jobs from CSV and JSON, all or none, each wrong row with its
number.
"""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

import tests.tasks  # noqa: F401  registers the tasks of scenes
from jobs.core.crypto import read_body
from jobs.definitions.file_import import Report, import_jobs, preview_import, read_rows
from jobs.definitions.upsert import Upserted
from jobs.models import AuditEntry, Job, Owner

HEADER = "key,task,arguments,interval_minutes"
ROW = '{},tests.add,"{{""x"": 1, ""y"": 2}}",5'


@pytest.fixture(autouse=True)
def offered(settings: Settings) -> None:
    """The tasks of scenes are on offer."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}


def jobs(text: str | bytes) -> list[tuple[int, Any]]:
    """Return the jobs of a file without problems."""
    rows = read_rows(text if isinstance(text, bytes) else text.encode())
    assert rows.problems == []
    return rows.jobs


def problems(text: str | bytes) -> list[tuple[int | None, str, str]]:
    rows = read_rows(text if isinstance(text, bytes) else text.encode())
    return [(problem.row, problem.field, problem.problem) for problem in rows.problems]


ONE = [(2, {"key": "a", "task": "tests.add", "name": 'He said "x", y', "interval_minutes": 5})]


@pytest.mark.parametrize(
    "text",
    [
        'key,task,name,interval_minutes\na,tests.add,"He said ""x"", y",5\n',
        'key,task,name,interval_minutes\r\na,tests.add,"He said ""x"", y",5',
        '\ufeffkey,task,name,interval_minutes\ra,tests.add,"He said ""x"", y",5\r',
        'key;task;name;interval_minutes\na;tests.add;"He said ""x"", y";5\n\n;;;\n',
        'key\ttask\tname\tinterval_minutes\t\na\ttests.add\t"He said ""x"", y"\t 5 \t\n',
        '"key","task",name," interval_minutes "\n"a","tests.add","He said ""x"", y","5"\n',
        'interval_minutes,name,task,key\n5,"He said ""x"", y",tests.add,a\n',
    ],
)
def test_csv_comes_in_many_ways(text: str) -> None:
    """Marks of byte order, ends of lines, delimiters, quotes, the order of columns."""
    assert jobs(text) == ONE


def test_cells_are_read_by_their_column() -> None:
    """JSON, numbers, words and flags; empty is the default; the rest is text as it stands."""
    text = (
        "key,task,arguments,labels,retry_on,enabled,smooth,time_limit_seconds,priority,name,cron\n"
        '007,t,"{""n"": [1]}","{""a"": ""b""}",KeyError;a.B,no,TRUE,1.5,0,=1+1,"0,30 4 * * *"\n'
        '"two\nlines",t,,,,,,,,,\n'
    )
    assert jobs(text) == [
        (
            2,
            {
                "key": "007",
                "task": "t",
                "arguments": {"n": [1]},
                "labels": {"a": "b"},
                "retry_on": ["KeyError", "a.B"],
                "enabled": False,
                "smooth": True,
                "time_limit_seconds": 1.5,
                "priority": 0,
                "name": "=1+1",
                "cron": "0,30 4 * * *",
            },
        ),
        (3, {"key": "two\nlines", "task": "t"}),
    ]


@pytest.mark.parametrize(
    ("text", "row", "field", "problem"),
    [
        ("", None, "file", "is empty"),
        ("\ufeff \n", None, "file", "is empty"),
        (b"key,task\na,\xe4", None, "file", "not UTF-8 in line 2"),
        ("kee,task\n", 1, "key", "is no column"),
        ("key\n", 1, "task", "is no column"),
        ("key,task,key\n", 1, "key", "is a column twice"),
        ("key,task,arguments.x\n", 1, "arguments.x", "did you mean arguments?"),
        ("key,task\na,b,c\n", 2, "row", "has 3 cells, the header has 2"),
        ('key,task\na,"b\nc,d\n', 2, "row", "cannot be read from here"),
        ('key,task\na,b\na,"b"c\n', 3, "row", "cannot be read from here"),
        ("key,task,arguments\na,b,{\n", 2, "arguments", "is not JSON"),
        ("key,task,labels\na,b,[]\n", 2, "labels", "but no object"),
        ("{", None, "file", "is not the JSON of jobs"),
        ('{"key": "a"}', None, "file", "not a list of jobs"),
        ('[{"key": "a", "key": "b"}]', None, "file", "'key' is given twice"),
        ('[{"key": NaN}]', None, "file", "NaN is not JSON"),
        ("[" * 100_000, None, "file", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_named(
    text: str | bytes, row: int | None, field: str, problem: str
) -> None:
    """With the row, as a spreadsheet counts, and the column."""
    found = [one for one in problems(text) if one[:2] == (row, field)]
    assert found and problem in found[0][2], problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "key,task," + ",".join(f"column_{number}" for number in range(30_000)),
        "key,task," + ",".join(["label"] * 30_000),
        "[{" + "".join(f'"{number}": 1, ' for number in range(30_000)) + '"0": 2}]',
    ],
)
def test_names_without_number_cost_no_time(text: str) -> None:
    """To compare each name with each other would take minutes."""
    began = time.process_time()
    assert problems(text)
    assert time.process_time() - began < 2


def test_what_an_import_would_do_is_foreseen(acme: Owner, root_user: User) -> None:
    """Counted without being done; then done, and audited."""
    text = "\n".join([HEADER, ROW.format("a"), ROW.format("b")]).encode()
    foreseen = preview_import(text, owner=acme)
    assert foreseen == Report(2, (), Upserted(2, 0, 0))
    assert not Job.objects.exists() and not AuditEntry.objects.exists()
    assert import_jobs(text, owner=acme, actor=root_user, name="jobs.csv") == foreseen
    job = Job.objects.get(key="a")
    given = read_body(job.payload, key=0, place=job.place)
    assert (job.interval_minutes, given) == (5, ([], {"x": 1, "y": 2}))
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.owner, entry.actor_name) == ("import jobs", acme, "root")
    assert entry.details == {"file": "jobs.csv", "created": 2, "updated": 0, "unchanged": 0}
    changed = text.replace(b",5", b",6", 1)
    assert preview_import(changed, owner=acme).upserted == Upserted(0, 1, 1)


def test_every_wrong_row_is_listed_and_nothing_is_stored(acme: Owner, root_user: User) -> None:
    """Whatever is wrong with it: cells, fields, arguments, a key twice."""
    text = "\n".join(
        [
            HEADER,
            ROW.format("a"),
            "b,tests.add,{,5",
            "c,tests.nothing,,five",
            ROW.format("a"),
            "",
            "d,tests.add,,0",
        ]
    ).encode()
    for report in (
        preview_import(text, owner=acme),
        import_jobs(text, owner=acme, actor=root_user, name="x"),
    ):
        found = {(problem.row, problem.field) for problem in report.problems}
        assert found == {
            (3, "arguments"),
            (4, "task"),
            (4, "interval_minutes"),
            (5, "key"),
            (7, "arguments"),
            (7, "interval_minutes"),
        }
        assert (report.rows, report.wrong_rows, report.upserted) == (5, 4, None)
        rows = [problem.row for problem in report.problems]
        assert rows == sorted(rows, key=lambda row: row or 0)
    assert not Job.objects.exists() and not AuditEntry.objects.exists()


@pytest.fixture
def root_user(db: None) -> User:
    return User.objects.create(username="root")
