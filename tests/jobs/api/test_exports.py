"""jobs/api/exports: all runs of a filter, in both formats; a cell of a CSV is no formula."""

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client

from jobs import upsert_jobs
from jobs.api import exports
from jobs.api.csv_cells import harmless
from jobs.api.kit import streams
from jobs.catalog.encoding import encode_body, encode_result
from jobs.core.sql import now
from jobs.models import ApiToken, Job, Owner, Run
from tests.jobs.api.conftest import ROOT, Caller
from tests.jobs.scenes import submitted


def exported(client: Client, **query: Any) -> str:
    """Return the whole text of an export."""
    answer: Any = client.get(f"{ROOT}/exports/runs", query)
    assert answer.status_code == 200, answer.content
    return str(answer.content.decode())


def test_all_runs_are_exported_in_chunks(
    caller: Caller, acme: Owner, stranger: Owner, monkeypatch: Any
) -> None:
    """Each once, newest first; those of other owners never."""
    monkeypatch.setattr(exports, "CHUNK", 7)
    runs = submitted(acme, 30)
    submitted(stranger, 3)
    rows = [json.loads(line) for line in exported(caller(acme)).splitlines()]
    assert [row["id"] for row in rows] == [str(run.id) for run in reversed(runs)]
    assert "arguments" not in rows[0]
    assert len(exported(caller()).splitlines()) == 33


def test_a_csv_has_a_header_and_no_formulas(caller: Caller, acme: Owner) -> None:
    """Also where a caller chose the text."""
    [run] = submitted(acme)
    Run.objects.filter(id=run.id).update(error_type="=cmd|' /C calc'!A0", error_message="no")
    Run.objects.filter(id=run.id).update(queue="@SUM(1)")
    text = exported(caller(acme), format="csv", with_arguments=True)
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["id"], row["queue"]) == (str(run.id), "'@SUM(1)")
    assert json.loads(row["error"])["type"].startswith("=cmd")
    assert json.loads(row["arguments"])["kwargs"] == {"x": 0, "y": 1}
    assert exported(caller(acme), format="csv", task="tests.no").count("\n") == 1


@pytest.mark.parametrize("format_", ["ndjson", "csv"])
def test_values_that_json_lacks_do_not_end_an_export(
    caller: Caller, acme: Owner, *, format_: str
) -> None:
    """Bytes are sent in base64; what cannot be read is null. So are single runs and jobs."""
    client = caller(acme)
    unreadable, odd = submitted(acme, 2)
    Run.objects.filter(id=unreadable.id).update(payload_key=7, result=b"x", result_key=7)
    Run.objects.filter(id=odd.id).update(result=encode_result({"a": b"\xff"}, max_bytes=1_000))
    text = exported(client, format=format_, with_arguments=True)
    rows: list[Any] = (
        [json.loads(line) for line in text.splitlines()]
        if format_ == "ndjson"
        else [
            {**row, **{name: json.loads(row[name] or "null") for name in ("arguments", "result")}}
            for row in csv.DictReader(io.StringIO(text))
        ]
    )
    assert [row["result"] for row in rows] == [{"a": "_w=="}, None]
    assert [row["arguments"] is None for row in rows] == [False, True]
    for run, row in ((odd, rows[0]), (unreadable, rows[1])):
        shown = client.get(f"{ROOT}/runs/{run.id}").json()
        assert (shown["result"], shown["arguments"]) == (row["result"], row["arguments"])
    upsert_jobs(acme, [{"key": "k", "task": "tests.add", "arguments": {"x": 1, "y": 2}}])
    Job.objects.update(payload=encode_body((), {"x": b"\xff", "y": 2}, max_bytes=1_000))
    job = client.get(f"{ROOT}/jobs/{Job.objects.get().pk}").json()
    assert job["arguments"] == {"x": "_w==", "y": 2}


def test_an_export_whose_token_is_revoked_breaks_off(
    caller: Caller, acme: Owner, monkeypatch: Any
) -> None:
    """With an error of the connection: a part must not look like the whole."""
    monkeypatch.setattr(exports, "CHUNK", 2)
    monkeypatch.setattr(streams, "TRUSTED_SECONDS", 0.0)
    submitted(acme, 6)
    # Without waiting for the end.
    client = Client(headers={"Authorization": caller(acme).defaults["HTTP_AUTHORIZATION"]})
    parts = iter(client.get(f"{ROOT}/exports/runs").streaming_content)  # type: ignore[attr-defined]
    next(parts)
    ApiToken.objects.update(revoked_at=now())
    with pytest.raises(ConnectionAbortedError):
        next(parts)


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", " =", " \n \u00a0+", "＝"])
def test_a_formula_becomes_text(first: str) -> None:
    """Every beginning that spreadsheets run; some drop spaces and line feeds before they look."""
    assert harmless(f"{first}HYPERLINK(1)") == f"'{first}HYPERLINK(1)"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (-5, "-5"),
        (1.5, "1.5"),
        (True, "true"),
        ("a=b", "a=b"),
        ({"a": "=1"}, '{"a": "=1"}'),
    ],
)
def test_other_values_stay(value: Any, cell: str) -> None:
    """Numbers stay numbers; containers are JSON."""
    assert harmless(value) == cell
