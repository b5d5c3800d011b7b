"""jobs/catalog/celery_callbacks.py: Celery's callbacks travel in the payload, and a chord counts in
PostgreSQL.
"""

from typing import Any

import pytest
from celery import chain, current_app, group
from django_celery_results.models import ChordCounter
from kombu.utils import json

from jobs import submit, submit_many
from jobs.catalog.registry import job, resolve
from jobs.core.errors import OptionError
from jobs.models import Owner, Run

CALLS = [{"x": n, "y": 1} for n in range(3)]


def embedded(run: Run) -> dict[str, Any]:
    """Return the callbacks in a run's payload."""
    _args, _kwargs, embed = json.loads(bytes(run.payload))
    return dict(embed)


def test_links_are_in_the_payload(acme: Owner) -> None:
    """As Celery's messages have them, in lists; the broker never sees them."""
    callback = current_app.signature("tests.total")
    run = submit("tests.add", 1, 2, owner=acme, link=callback, link_error=callback)
    embed = embedded(run)
    assert [item["task"] for item in embed["callbacks"] + embed["errbacks"]] == ["tests.total"] * 2


def test_a_chord_opens_with_its_runs(acme: Owner) -> None:
    """Each run knows its place, and its result is wanted."""
    submission = submit_many("tests.add", CALLS, owner=acme, chord=resolve("tests.total").s())
    runs = list(Run.objects.filter(submission=submission).order_by("id"))
    counter = ChordCounter.objects.get()
    assert counter.count == 3
    assert [run.options for run in runs] == [
        {"group": counter.group_id, "group_index": index, "ignore_result": False}
        for index in range(3)
    ]
    assert {item[0][0] for item in json.loads(counter.sub_tasks)} == {str(run.id) for run in runs}
    assert embedded(runs[0])["chord"]["task"] == "tests.total"


@job(name="tests.chords.durable")
def durable(value: int) -> None: ...


def test_a_callback_that_needs_a_row_is_refused(acme: Owner) -> None:
    """Celery would send it as a plain message; also deep inside a group or a chain."""
    named, add = current_app.signature(durable.name), resolve("tests.add")
    bad = [named, group(add.si(1, 2), named), chain(add.si(1, 2), group(named, named))]
    for signature in bad:
        with pytest.raises(OptionError, match=r"option link: calls tests\.chords\.durable, which"):
            submit("tests.add", 1, 2, owner=acme, link=signature)


@pytest.mark.parametrize("option", ["link", "link_error"])
def test_what_is_no_signature_is_refused(acme: Owner, option: str) -> None:
    """By the name of the option."""
    with pytest.raises(OptionError, match=f"option {option}: is a Celery signature"):
        submit("tests.add", 1, 2, owner=acme, **{option: "tests.total"})
    with pytest.raises(OptionError, match="option chord: is a Celery signature"):
        submit_many("tests.add", CALLS, owner=acme, chord="tests.total")  # type: ignore[arg-type]
