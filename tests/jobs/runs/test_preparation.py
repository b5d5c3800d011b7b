"""jobs/runs/preparation.py: what a caller gives is checked field by field before anything is
stored.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from celery import current_app, shared_task
from pytest_django import Settings

from jobs.catalog import placeholders
from jobs.catalog.registry import job, resolve
from jobs.core.errors import ArgumentError, BatchError, OptionError, UnknownOwner
from jobs.core.inputs import LOCK_LIMIT
from jobs.models import Owner, Run, Target
from jobs.runs import preparation
from jobs.runs.options import Options

CALLS = [{"host": "fw-1", "site": {"name": "berlin"}}, {"host": "fw-2", "site": {"name": "rome"}}]


@shared_task(name="tests.preparing.clash")
def clash(target: str, priority: int = 1) -> None: ...


@job(name="tests.preparing.declared", max_attempts=9, soft_time_limit_seconds=60, priority=8)
def declared() -> None: ...


def test_a_name_that_is_argument_and_option_has_to_be_said_in_another_way() -> None:
    """A guess would set the wrong one; `arguments={...}` tells them apart."""
    with pytest.raises(OptionError, match=r"target: is also an argument of .*arguments=\{"):
        preparation.split_options(resolve(clash), {"target": "fw-1"}, None)
    options, arguments = preparation.split_options(
        resolve(clash), {"target": "site"}, {"target": "fw-1"}
    )
    assert (options.target, arguments) == ("site", {"target": "fw-1"})


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("max_attempt", r"is unknown; did you mean max_attempts\?"),
        ("max_retries", "is Celery's and unknown here; use max_attempts"),
        ("expires", "is Celery's and unknown here; use deadline_seconds"),
        ("time_limit", "is Celery's and unknown here; use time_limit_seconds"),
    ],
)
def test_a_misspelt_option_beside_arguments_names_the_near_miss(name: str, problem: str) -> None:
    """Also among a submit's arguments, and among the options of a bulk."""
    with pytest.raises(OptionError, match=f"option {name}: {problem}"):
        preparation.split_options(resolve("tests.add"), {"x": 1, "y": 2, name: 3}, None)
    with pytest.raises(OptionError, match=f"option {name}: "):
        preparation.checked_options({name: 3})


@pytest.mark.parametrize("option", ["retry_on", "give_up_on"])
def test_an_error_that_no_class_has_is_refused(option: str) -> None:
    """A run that waits for an error which cannot come would never be tried again, in silence."""
    with pytest.raises(
        OptionError, match=f"option {option}: holds 'NoSuch', and no exception .* here; name it"
    ):
        preparation.checked_options({option: ["NoSuch"]})
    with pytest.raises(OptionError, match="did you mean ValueError"):
        preparation.checked_options({option: "ValueEror"})
    for known in ("ValueError", "OptionError", "WorkerLostError", "elsewhere.NoSuch", OSError):
        preparation.checked_options({option: [known]})


NO_LABELS: tuple[Any, ...] = ("x" * 201, "nul \x00", "\ud800", None)
NO_OWNERS: tuple[Any, ...] = (None, 5, ["acme"])


def split(arguments: Any) -> object:
    """Tell arguments, that are given as one, from no options."""
    return preparation.split_options(resolve("tests.add"), {}, arguments)


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        *(
            (partial(split, given), "argument arguments: is a mapping")
            for given in ([1, 2], "x", 7)
        ),
        *(
            (partial(preparation.refuse_size, [{}] * count, ""), f"these are {count:,}")
            for count in (0, 100_001)
        ),
        *((partial(preparation.refuse_size, [{}], label), "label: ") for label in NO_LABELS),
        *(
            (partial(preparation.load_owner, given), "owner: is an Owner or its name, not ")
            for given in NO_OWNERS
        ),
    ],
)
def test_another_form_is_refused(act: Callable[[], object], problem: str) -> None:
    """Arguments are a mapping, a bulk has 1 to 100,000 calls, a label is text of at most 200
    characters that a database holds, an owner is a row or a name.
    """
    with pytest.raises((ArgumentError, OptionError), match=problem):
        act()


def test_every_bad_element_of_a_bulk_is_listed() -> None:
    """With its index and its own error."""
    calls: list[Any] = [{"x": 1, "y": 2}, {"x": "one", "y": 2}, 7, {"x": 1}]
    with pytest.raises(BatchError) as caught:
        preparation.encode_payloads(resolve("tests.add"), calls, embed={})
    assert [index for index, _ in caught.value.problems] == [1, 2, 3]
    assert "3 of 4 elements are wrong: element 1: argument x" in str(caught.value)


def test_a_template_is_filled_with_each_call() -> None:
    """Braces written twice stand for themselves; without any, all runs share the text."""
    assert placeholders.filled("lock", "all", CALLS) == ["all", "all"]
    assert placeholders.filled("target", "{host}", CALLS) == ["fw-1", "fw-2"]
    assert placeholders.filled("target", "{{{host}}}", CALLS) == ["{fw-1}", "{fw-2}"]


@pytest.mark.parametrize(
    "template",
    [
        *("{x.__class__}", "{host.__class__.__mro__}", "{site[name]}", "{host!r}"),
        *("{host:>2000000000}", "{host:{host}}", "{}", "{0}", "{missing}", "{host", "host}"),
    ],
)
@pytest.mark.parametrize("option", ["target", "lock"])
def test_a_template_names_arguments_and_nothing_else(option: str, template: str) -> None:
    """No attributes, items, conversions or widths: the error names the option."""
    with pytest.raises(OptionError) as caught:
        placeholders.filled(option, template, CALLS)
    assert caught.value.option == option


@pytest.mark.parametrize("value", ["x" * 201, "nul \x00", "\ud800"])
def test_a_filled_template_is_checked_again(value: str) -> None:
    """What an argument brings in has to fit, too."""
    with pytest.raises(OptionError, match="lock: "):
        placeholders.filled("lock", "{host}", [{"host": value}])


@pytest.mark.parametrize("slug", ["nobody", "", "nul \x00", "\ud800"])
@pytest.mark.django_db
def test_an_unknown_owner_is_refused(slug: Any) -> None:
    """Whatever was given; the error can be written to a log."""
    with pytest.raises(UnknownOwner) as caught:
        preparation.load_owner(slug)
    assert str(caught.value).encode()


def test_targets_are_made_once_and_belong_to_their_owner(acme: Owner, stranger: Owner) -> None:
    """A name known to another owner is another target."""
    first = preparation.make_targets(acme, ["fw-1", "", "fw-2", "fw-1"])
    assert set(first) == {"fw-1", "fw-2"}
    assert preparation.make_targets(acme, ["fw-2", "fw-3"])["fw-2"] == first["fw-2"]
    assert preparation.make_targets(stranger, ["fw-1"])["fw-1"] != first["fw-1"]
    assert Target.objects.filter(owner=acme).count() == 3
    assert preparation.make_targets(acme, [""]) == {}


def test_only_queues_that_workers_know_are_allowed() -> None:
    """The system's own queue is not for callers."""
    assert preparation.queue_name(Options()) == "jobs"
    for name in ("nowhere", "system", "notices"):
        with pytest.raises(OptionError, match="queue: is one of: jobs"):
            preparation.queue_name(Options(queue=name))
    assert "system" in current_app.amqp.queues


def test_a_lock_is_scoped_to_its_owner_and_fits_the_row(acme: Owner) -> None:
    """The longest slug and the longest lock fit together."""
    assert preparation.lock_key(acme, "door") == "acme:door"
    assert preparation.lock_key(acme, "") == ""
    longest = preparation.lock_key(Owner(slug="s" * 100), "x" * LOCK_LIMIT)
    field = Run._meta.get_field("lock_key")
    assert len(longest) == field.max_length


def test_option_before_the_task_s_policy_before_the_setting(
    acme: Owner, settings: Settings
) -> None:
    """Each leaves open what the next decides."""
    settings.FAIRSHIFT = {"MAX_ATTEMPTS": 4}
    task, plain = resolve(declared), resolve("tests.add")
    assert preparation.run_defaults(plain, acme, Options()).max_attempts == 4
    shared = preparation.run_defaults(task, acme, Options())
    assert (shared.max_attempts, shared.priority) == (9, 8)
    assert shared.policy == {"soft_time_limit_seconds": 60}
    chosen = preparation.run_defaults(task, acme, Options(max_attempts=2, priority=0))
    assert (chosen.max_attempts, chosen.priority) == (2, 0)


def test_a_deadline_counts_from_the_moment_that_the_run_is_due(acme: Owner) -> None:
    """Not from the submit."""
    shared = preparation.run_defaults(
        resolve("tests.add"), acme, Options(countdown=600, deadline_seconds=30)
    )
    assert shared.due_at is not None and shared.deadline_at is not None
    assert (shared.due_at - shared.created_at).total_seconds() == 600
    assert (shared.deadline_at - shared.due_at).total_seconds() == 30
