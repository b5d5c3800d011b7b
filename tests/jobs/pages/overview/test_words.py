"""jobs/pages/overview/words.py and picture.py: an owner in a few words, minutes as bars."""

from typing import Any

import pytest

from jobs.core.states import State
from jobs.pages.overview.picture import outcome_bars
from jobs.pages.overview.words import why_now
from jobs.system.rollups.reads import Minute
from tests.jobs.system.verdict.test_rules import NOW, waiting


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "takes turns"),
        ({"max_running": 2}, "at its cap of 2"),
        ({"rest_seconds": 3.2}, "over its rate, next in 3 s"),
        ({"is_paused": True}, "paused"),
    ],
)
def test_an_owner_that_waits_says_why(limits: dict[str, Any], words: str) -> None:
    assert why_now(waiting(**limits)).word == words


def minute(good: int, bad: int) -> Minute:
    """Return a minute in which so many runs ended."""
    outcomes = {State.SUCCEEDED: good, State.FAILED: bad}
    return Minute(at=NOW, outcomes=outcomes, wait=None, run=None)


def test_bars_have_one_scale_and_a_single_failure_is_seen() -> None:
    """Runs that succeeded stand on the line, failed ones hang below it."""
    picture = outcome_bars([minute(900, 1), minute(0, 0), minute(450, 0)])
    assert 'fill good" x="0" y="0.0" width="8" height="90.0"' in picture
    assert 'fill bad" x="0" y="91.0" width="8" height="2.0"' in picture
    assert 'fill good" x="20" y="45.0" width="8" height="45.0"' in picture
    assert "1,350 succeeded, 1 failed; at most 900" in picture
    assert picture.count("fill ") == 3
    assert "0 succeeded" in outcome_bars([])
