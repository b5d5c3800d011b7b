"""fleet/logs.py: a line is an event with facts, for people and for programs."""

import ast
import json
import logging
import logging.config
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.logs import logging_settings
from fleet import BoundFacts, Event, bind, bind_process, bound_facts, log_events
from jobs.core import log_events as jobs_log_events

logger = logging.getLogger("tests.fleet.logs")
PROJECT = Path(__file__).parents[2]
NO_TASK = Event("no_task", logging.WARNING, "no {task}: {outcome}", "Deploy it.")
BROKEN = Event("broken", logging.ERROR, "run {run_id} is broken", "Read on.")
CATALOGUES = (log_events, jobs_log_events)
EVENTS = [
    each for catalogue in CATALOGUES for each in vars(catalogue).values() if isinstance(each, Event)
]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
# Fields that a line has anyway.
TAKEN = {"event", "level", "logger", "message", "timestamp", "exception", "exc_info", "self"}


def test_an_installation_without_structlog_reads_a_sentence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Python's own formatters write it; the record has the name and the facts."""
    NO_TASK.log(logger, task="shop.greet", outcome="100 % {lost}")
    assert caplog.messages == ["no shop.greet: 100 % {lost}"]
    [record] = caplog.records
    assert (record.event, record.levelname) == ("no_task", "WARNING")
    assert record.facts == {"task": "shop.greet", "outcome": "100 % {lost}"}
    assert Path(record.pathname) == Path(__file__)


def _lines(form: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Log one event with a traceback, and one line of other software."""
    formatter = logging_settings(form=form, level="INFO")["formatters"]["fairshift"]
    handler = logging.StreamHandler()
    handler.setFormatter(formatter.pop("()")(**formatter))
    logger.addHandler(handler)
    try:
        try:
            raise ValueError("no such row")
        except ValueError as error:
            BROKEN.log(logger, exc_info=True, run_id="r1", job=7, error=error)
        logger.error("plain %s", "line")
    finally:
        logger.removeHandler(handler)
    return capsys.readouterr().err.splitlines()


def test_json_lines_have_the_name_and_a_field_a_fact(capsys: pytest.CaptureFixture[str]) -> None:
    """As this project's own settings write them; with a traceback where one is asked for."""
    first, second = map(json.loads, _lines("json", capsys))
    assert (first["event"], first["run_id"], first["job"]) == ("broken", "r1", 7)
    assert (first["message"], first["error"]) == ("run r1 is broken", "no such row")
    assert (first["level"], first["logger"]) == ("error", "tests.fleet.logs")
    assert "no such row" in first["exception"]
    assert second["event"] == "plain line" and "run_id" not in second


def test_each_name_of_the_catalogues_is_used_once() -> None:
    """In lower case, as programs look for it; and no fact takes the name of another field."""
    names = [each.name for each in EVENTS]
    assert len(names) == len(set(names)) > 70
    for each in EVENTS:
        assert each.name.replace("_", "").isalpha() and each.name.islower(), each.name
        assert not TAKEN & set(_facts_of(each)), each.name
        assert each.advice.endswith((".", "?")), each.name


def test_every_line_is_an_event_with_its_facts() -> None:
    """In all of jobs and fleet: no other call of a logger, and no fact that a text lacks."""
    used = set()
    for path, call in _calls():
        name = ast.unparse(call.func)
        assert not (name.split(".")[0] in {"log", "logger"} and name.split(".")[-1] in LEVELS), (
            f"{path}:{call.lineno}: {name}"
        )
        if name.startswith("log_events.") and name.endswith(".log"):
            catalogue = CATALOGUES[path.parts[0] == "jobs"]
            constant = name.split(".")[1]
            used.add((catalogue, constant))
            given = [keyword.arg for keyword in call.keywords]
            if None not in given:  # else facts from a dictionary
                facts = set(_facts_of(getattr(catalogue, constant)))
                assert facts <= set(given), f"{path}:{call.lineno}"
    declared = {
        (catalogue, key)
        for catalogue in CATALOGUES
        for key, each in vars(catalogue).items()
        if isinstance(each, Event)
    }
    assert used == declared


def _calls() -> Iterator[tuple[Path, ast.Call]]:
    for package in ("jobs", "fleet"):
        for file in (PROJECT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call):
                    yield file.relative_to(PROJECT), node


def _facts_of(event: Event) -> list[Any]:
    return [name for _, name, _, _ in string.Formatter().parse(event.text) if name]


def test_a_line_has_the_facts_of_its_process_and_block(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line's own facts win, then those of the innermost block."""
    monkeypatch.setattr("fleet.logs._of_process", {})
    bind_process(worker="w1", owner="shared")
    with bind(owner="acme", run_id="of the block"):
        first, second = map(json.loads, _lines("json", capsys))
    assert (first["worker"], first["owner"], first["run_id"]) == ("w1", "acme", "r1")
    assert second["run_id"] == "of the block"
    assert bound_facts() == {"worker": "w1", "owner": "shared"}


def test_a_plain_formatter_may_name_bound_facts(capsys: pytest.CaptureFixture[str]) -> None:
    """By a filter, in projects without structlog; a fact or event that is missing is empty."""
    handler = logging.StreamHandler()
    handler.addFilter(BoundFacts())
    form = "[%(event)s/%(owner)s/%(attempt)s%(trace_id)s] %(message)s"
    handler.setFormatter(logging.Formatter(form))
    logger.addHandler(handler)
    try:
        with bind(owner="acme", attempt=2):
            logger.error("plain line")
        BROKEN.log(logger, run_id=7)
    finally:
        logger.removeHandler(handler)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("] ")[::2] for line in lines] == [
        ("[/acme/2", "plain line"),
        ("[broken//", "run 7 is broken"),
    ]
