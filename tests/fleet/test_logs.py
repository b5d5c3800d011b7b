"""fleet/logs.py: a line is an event with facts, for people and for programs."""

import json
import logging
import logging.config

import pytest

from config.logs import logging_settings
from fleet.logs import log_event

logger = logging.getLogger("tests.fleet.logs")


def test_an_installation_without_structlog_reads_the_facts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Python's own formatters write the name and every fact."""
    log_event(
        logger, logging.WARNING, "unknown_task", {"task": "shop.greet", "outcome": "100 % lost"}
    )
    assert caplog.messages == ["unknown_task task=shop.greet outcome=100 % lost"]


def test_json_lines_have_the_name_and_a_field_a_fact(capsys: pytest.CaptureFixture[str]) -> None:
    """As this project's own settings write them; with a traceback where one is asked for."""
    settings = logging_settings(form="json", level="INFO")
    formatter = settings["formatters"]["fairshift"]
    made = formatter.pop("()")(**formatter)
    handler = logging.StreamHandler()
    handler.setFormatter(made)
    logger.addHandler(handler)
    try:
        try:
            raise ValueError("no such row")
        except ValueError:
            log_event(logger, logging.ERROR, "unreadable", {"run": "r1", "job": 7}, exc_info=True)
        logger.error("plain %s", "line")
    finally:
        logger.removeHandler(handler)
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["event"], first["run"], first["job"]) == ("unreadable", "r1", 7)
    assert (first["level"], first["logger"]) == ("error", "tests.fleet.logs")
    assert "no such row" in first["exception"]
    assert second["event"] == "plain line" and "run" not in second
