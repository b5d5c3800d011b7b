"""jobs/api/runs/logs: the log of a run in pages, as events, and as a file."""

import json
import logging
from typing import Any

from fleet import Kind
from jobs.core import sql
from jobs.models import Owner
from tests.jobs.api.conftest import ROOT, Caller, problem
from tests.jobs.logged import chunk, logging_run, say
from tests.jobs.scenes import recorded, submitted


def texts(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [line["text"] for line in answer.json()["items"]]


def test_a_cursor_goes_on_where_the_page_ended(caller: Caller, acme: Owner) -> None:
    """Also at the end of a log that still grows; each line comes once, with its number."""
    [run] = submitted(acme)
    at = logging_run(run, "a", "b", "c")
    client, path = caller(acme), f"{ROOT}/runs/{run.id}/log"
    first = client.get(path, {"limit": 2})
    assert texts(first) == ["a", "b"] and first.json()["has_more"]
    then = {"limit": 2, "cursor": first.json()["next"]}
    rest = client.get(path, then)
    assert texts(rest) == ["c"] and not rest.json()["has_more"]
    say(at, chunk(at, "f", first=6, level=logging.ERROR))
    last = client.get(path, {"limit": 2, "cursor": rest.json()["next"]})
    [line] = last.json()["items"]
    assert (line["number"], line["left_out"], line["level"]) == (6, 2, "ERROR")
    assert (line["attempt"], line["logger"], line["at"]) == (1, "shop", "2026-01-01T00:00:00Z")
    problem(client.get(path, {**then, "level": "ERROR"}), 422, "invalid_cursor")


def test_lines_are_found_by_attempt_level_and_text(caller: Caller, acme: Owner) -> None:
    """A page's gap counts to the first line that matches after it."""
    [run] = submitted(acme)
    at = logging_run(run, "sold 1", "other")
    say(at, chunk(at, "SOLD 2", first=4, level=logging.ERROR))
    client, path = caller(acme), f"{ROOT}/runs/{run.id}/log"
    assert texts(client.get(path, {"text": "Sold"})) == ["sold 1", "SOLD 2"]
    [line] = client.get(path, {"level": "WARNING"}).json()["items"]
    assert (line["text"], line["left_out"]) == ("SOLD 2", 1)
    assert texts(client.get(path, {"attempt": 2})) == []
    problem(client.get(path, {"level": "LOUD"}), 422, "invalid")


def test_the_stream_ends_with_the_run(caller: Caller, acme: Owner) -> None:
    """Each line is an event with a place to go on from; nothing follows its end."""
    [run] = submitted(acme)
    at = logging_run(run, "a", "b")
    recorded(at, Kind.SUCCEEDED, log=[chunk(at, "c", first=3)])
    client, path = caller(acme), f"{ROOT}/runs/{run.id}/log/events"
    events = client.get(path).content.decode().strip().split("\n\n")[1:]
    found = [dict(row.split(": ", 1) for row in event.split("\n")) for event in events]
    assert [event["event"] for event in found] == ["line"] * 3 + ["end"]
    assert json.loads(found[2]["data"])["text"] == "c"
    assert json.loads(found[3]["data"]) == {"state": "succeeded"}
    after = client.get(path, headers={"Last-Event-ID": found[0]["id"]}).content.decode()
    assert after.count("event: line") == 2
    assert client.get(path, headers={"Last-Event-ID": found[3]["id"]}).status_code == 204


def test_a_file_has_all_lines(caller: Caller, acme: Owner) -> None:
    """As text with its gaps, and as NDJSON; what was spoilt says so."""
    [run] = submitted(acme)
    at = logging_run(run, "a", "b\nb2")
    say(at, chunk(at, "e", first=5))
    client, path = caller(acme), f"{ROOT}/runs/{run.id}/log/file"
    assert client.get(path).content.decode().splitlines() == [
        "2026-01-01T00:00:00.000Z INFO     shop: a",
        "2026-01-01T00:00:01.000Z INFO     shop: b",
        "b2",
        "… 2 lines left out …",
        "2026-01-01T00:00:00.000Z INFO     shop: e",
    ]
    rows = client.get(path, {"format": "ndjson"}).content.decode().splitlines()
    assert [json.loads(row)["text"] for row in rows] == ["a", "b\nb2", "e"]
    sql.query("UPDATE jobs_log SET data = '\\x00' WHERE first_line = 1")
    assert "cannot be read" in client.get(path).content.decode()
