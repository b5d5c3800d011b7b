"""jobs/pages/submissions: the list, and one submission with its verbs."""

from typing import Any

import pytest
from django.test import Client

from jobs.models import Owner, Submission
from jobs.pages.submissions import one
from tests.jobs.scenes import living_worker, submitted


def made(owner: Owner, count: int = 2, **options: Any) -> Submission:
    """Return a submission of some runs."""
    return Submission.objects.get(pk=submitted(owner, count, **options)[0].submission_id)


def path(of: Submission) -> str:
    return f"/submissions/{of.pk}/"


def test_one_submission_shows_its_progress_and_what_is_ahead(as_root: Client, acme: Owner) -> None:
    """The forecast and the share of its owner are shown while it runs."""
    living_worker()
    found = made(acme, 3, label="nightly")
    answer = as_root.get(path(found))
    page = answer.content.decode()
    assert answer.context["forecast"].count == 3 and answer.context["usage"] is not None
    for text in ("0 of 3", "3 queued", "Finishes by", "Share of acme", "nightly"):
        assert text in page, text
    found.cancel()
    ended = as_root.get(path(found))
    assert ended.context["usage"] is None and b"Finishes by" not in ended.content
    assert b"100 %" in ended.content and b"3 cancelled" in ended.content


def test_a_forecast_that_takes_too_long_is_replaced_by_a_rough_one(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so."""
    monkeypatch.setattr(one, "forecast_rest", lambda _submission: None)
    found = as_root.get(path(made(acme, 2))).context["forecast"]
    assert found.count == 2 and "Rough" in found.warnings[0]
