"""Schedules, windows, causes and warnings in German: every part is, and numbers are German."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import translation

from jobs.core.language import in_language
from jobs.owners.audited import ACTIONS, action_in_words
from jobs.runs.reads.causes import KNOWN, cause_in_words
from jobs.schedules import Schedule
from jobs.schedules import in_words as schedule_in_words
from jobs.windows import Effect, Entry
from jobs.windows import in_words as window_in_words

STARTS = datetime.fromisoformat("2026-03-02T22:00")


@pytest.fixture(autouse=True)
def _german() -> Any:
    with translation.override("de"):
        yield


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule("manual"), "nur von Hand"),
        (Schedule("interval", interval_minutes=15), "alle 15 Minuten"),
        (Schedule("interval", interval_minutes=60), "jede Stunde"),
        (Schedule("seconds", interval_seconds=1), "jede Sekunde"),
        (Schedule("cron", cron="30 2 * * *"), "um 02:30 jeden Tag, UTC"),
        (Schedule("cron", cron="5 4 * * 0"), "um 04:05 sonntags, UTC"),
        (Schedule("cron", cron="0 6 * * 1-5"), "um 06:00 von Montag bis Freitag, UTC"),
        (Schedule("cron", cron="7 * * * *"), "zur Minute 7 jeder Stunde, UTC"),
        (Schedule("cron", cron="*/5 * * * *"), "alle 5 Minuten einer Stunde, UTC"),
        (Schedule("cron", cron="0 0 1 * *"), "nach dem Cron-Ausdruck 0 0 1 * *, UTC"),
    ],
)
def test_schedules(schedule: Schedule, words: str) -> None:
    """Usual expressions of cron have words; others are shown."""
    assert in_language(schedule_in_words(schedule)) == words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("", "einmal, am 2026-03-02 um 22:00"),
        ("FREQ=DAILY", "jeden Tag um 22:00"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR", "alle 2 Wochen am Montag, Mittwoch und Freitag"),
        ("FREQ=MONTHLY;BYDAY=1MO,-1FR", "jeden Monat am 1. Montag und letzten Freitag um 22:00"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", "jeden Monat am letzten Tag um 22:00"),
        ("FREQ=YEARLY", "jedes Jahr am 2. März um 22:00"),
        ("FREQ=DAILY;COUNT=3", "jeden Tag um 22:00, 3-mal"),
    ],
)
def test_windows(rule: str, words: str) -> None:
    entry = Entry(Effect.WINDOW, STARTS, timedelta(hours=8), "Europe/Berlin", rule)
    said = in_language(window_in_words(entry))
    assert said.startswith(words) and said.endswith(", für 8 h, Europe/Berlin")


def test_every_cause_has_a_german_text() -> None:
    """A reason that a person gave stays as it is; an override has both."""
    assert [it for it in KNOWN if in_language(cause_in_words(it)) == it] == []
    assert in_language(cause_in_words("window closed")) == "Fenster geschlossen"
    assert in_language(cause_in_words("the disk is full")) == "the disk is full"
    overridden = cause_in_words("windows overridden by mia: now: or never")
    assert overridden == "windows overridden by mia: now: or never"
    assert in_language(overridden) == "Fenster übergangen von mia: now: or never"


def test_every_action_of_the_audit_has_a_german_name() -> None:
    same = {action for action in ACTIONS if in_language(action_in_words(str(action))) == action}
    assert same == set()
