"""The two walls between owners: the filters of `access`, and PostgreSQL's barrier."""

import sys
from typing import Any, Final

import pytest

from jobs.actions import Noun
from jobs.calendars import visibility
from jobs.core import barrier
from jobs.models.access import Access

EACH_ALONE: Final = ("filters", pytest.param("barrier", marks=pytest.mark.proof))


@pytest.fixture(params=EACH_ALONE)
def one_wall(db: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Only the filters of `access`, or only PostgreSQL's barrier: each must be enough for rows.

    `make test` plays the first, which new code is likelier to forget.
    """
    wall: str = request.param
    if wall == "filters":
        monkeypatch.setattr(barrier, "role", lambda: "")
        return wall
    barrier.role()  # asked once: no test counts that statement
    monkeypatch.setattr(Access, "narrowed", lambda _access, rows, **_options: rows)
    monkeypatch.setattr(Noun, "seen_by", lambda noun, _access: noun.rows())
    for filtering in (visibility.visible_rows, visibility.visible_attachments):
        _replace(filtering, lambda rows, _caller, **_options: rows, monkeypatch)
    return wall


def _replace(function: Any, other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace a function in every module of the project that has imported it."""
    name = function.__name__
    for module in list(sys.modules.values()):
        is_ours = getattr(module, "__name__", "").startswith("jobs.")
        if is_ours and getattr(module, name, None) is function:
            monkeypatch.setattr(module, name, other)
