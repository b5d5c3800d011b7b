"""The catalogue: which tasks may be submitted, and which are offered."""

import sys
from collections.abc import Callable, Iterator

import pytest
from celery import Celery, Task, chain, current_app, group, shared_task
from pytest_django import Settings

from jobs.catalog.registry import PLAIN_ONLY, job, never_awaited, offer_of, offered, resolve
from jobs.checks.wiring import check_tasks
from jobs.core.errors import OptionError, RowRequired, UnknownTask


@job(label="Reboot a device", max_attempts=5, retry_on=(OSError,), plain=True)
def reboot(host: str, force: bool = False) -> None:
    """Restart a device and wait for it.

    More lines are for readers of the code.
    """


@job
def rotate_keys(zone: str) -> None: ...


@shared_task(bind=True)
def undecorated(self: Task, host: str) -> None:
    """Belongs to another app."""


@shared_task(name="fairshift.system.sweep_of_a_test")
def system() -> None: ...


@pytest.fixture(autouse=True)
def app() -> Iterator[Celery]:
    """A Celery app of the test's own, as the current one."""
    before = current_app._get_current_object()
    with Celery("catalog", set_as_current=False) as app:
        app.set_current()
        yield app
        before.set_current()


def test_a_task_is_found_by_object_proxy_and_name() -> None:
    """All three mean the task of the current app."""
    name = f"{__name__}.undecorated"
    found = resolve(name)
    assert resolve(undecorated) is found
    assert resolve(found) is found
    assert (type(found).__mro__[-2], found.name) == (Task, name)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rotate_keys.delay("eu"),
        lambda: rotate_keys.apply_async(("eu",), countdown=5),
        lambda: rotate_keys.s("eu").delay(),
        lambda: group(rotate_keys.s("eu"), rotate_keys.s("us")).delay(),
        lambda: chain(rotate_keys.si("eu"), undecorated.si("x")).delay(),
        lambda: chain(undecorated.si("x"), rotate_keys.si("eu")).delay(),
        lambda: undecorated.apply_async(("x",), link=rotate_keys.si("eu")),
        lambda: undecorated.apply_async(("x",), link_error=rotate_keys.si("eu")),
        lambda: rotate_keys.map(["eu"]).delay(),
        lambda: rotate_keys.chunks([("eu",)], 1).delay(),
    ],
)
def test_a_task_that_needs_a_row_is_not_sent_without_one(call: Callable[[], None]) -> None:
    """The caller hears of it, and how to do it; a worker would only drop the message."""
    with pytest.raises(RowRequired, match=r"rotate_keys' runs only with a row: use submit\(\)"):
        call()


async def send() -> None: ...


def test_what_nothing_awaits_is_refused(app: Celery) -> None:
    """At import with @job, at a submit without; the check names it."""
    task = app.task(name="shop.send")(send)
    for refused in (lambda: job(send), lambda: job(plain=True)(send), lambda: resolve(task)):
        with pytest.raises(OptionError, match=r"async def.*async_to_sync"):
            refused()
    assert never_awaited() == ["shop.send"]
    [found] = check_tasks()
    assert found.id == "fairshift.E021" and "shop.send" in found.msg


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("tests.ad", "tests.add"),
        ("add", "tests.add"),
        ("tests.refund", None),
        ("tests.rebuild_index", None),
        (f"{__name__}.undecoratde", f"{__name__}.undecorated"),
    ],
)
def test_a_near_miss_is_near_in_the_task_s_own_name(given: str, near: str | None) -> None:
    """A misspelling is answered with the name that was meant.

    Names of one module are alike by what they share: that makes none of them a near miss.
    """
    with pytest.raises(UnknownTask) as caught:
        resolve(given)
    assert caught.value.near_miss == near


@pytest.mark.parametrize(
    "name", ["antigravity.fly", "os.system", "", "celery.chord", "fairshift.system.sweep_of_a_test"]
)
def test_what_is_no_task_for_callers_is_unknown(name: str) -> None:
    """Dotted paths are not imported, and internal tasks are not for callers."""
    with pytest.raises(UnknownTask):
        resolve(name)
    assert "antigravity" not in sys.modules


def test_a_name_of_a_megabyte_is_refused_at_once() -> None:
    """The error keeps only its beginning."""
    with pytest.raises(UnknownTask) as caught:
        resolve("x" * 1_000_000)
    assert len(caught.value.name) == 255


def test_job_offers_a_task_with_title_description_and_policy() -> None:
    """The title is given or made from the name; the docstring's first line describes it."""
    offer = offer_of(resolve(reboot))
    assert offer.title == "Reboot a device"
    assert offer.description == "Restart a device and wait for it."
    assert offer.plain
    assert offer.policy == {"max_attempts": 5, "retry_on": ("builtins.OSError",)}
    assert offer_of(resolve(rotate_keys)).title == "Rotate keys"
    assert not offer_of(resolve(rotate_keys)).plain


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_attemps": 3}, "max_attemps: is unknown; did you mean max_attempts?"),
        ({"max_attempts": 0}, "max_attempts: is a whole number from 1 to 100"),
        ({"max_retries": 3}, "max_retries: .* use max_attempts, or plain=True"),
        ({"queues": "x"}, "queues: is unknown; did you mean queue?"),
        ({"history": "none"}, "history: is unknown"),
        ({"expires": 60}, "expires: .* use deadline_seconds, or plain=True"),
        *(
            ({option: None}, f"{option}: has no effect on a run; .* plain=True")
            for option in sorted(PLAIN_ONLY)
        ),
        *(
            ({option: value}, f"{option}: would move messages behind the row's back.*plain=True")
            for option in ("acks_late", "acks_on_failure_or_timeout")
            for value in (True, False)
        ),
        ({"reject_on_worker_lost": True}, "reject_on_worker_lost: would move messages"),
        ({"retry_on_worker_lost": True}, "retry_on_worker_lost: would move messages"),
    ],
)
def test_wrong_options_are_refused_at_import(options: dict[str, object], message: str) -> None:
    """The decorator raises, so that a wrong policy cannot be deployed."""
    with pytest.raises(OptionError, match=message):
        job(**options)


def test_offered_are_jobs_and_what_the_settings_name(settings: Settings) -> None:
    """Nothing else, sorted by title; never a task of Celery's or of the system's."""
    mine = [item.name for item in offered() if item.name.startswith(__name__)]
    assert mine == [f"{__name__}.reboot", f"{__name__}.rotate_keys"]
    settings.FAIRSHIFT = {"OFFERED_TASKS": ["*"]}
    everything = {item.name: item.offer for item in offered()}
    assert everything[f"{__name__}.undecorated"].description == "Belongs to another app."
    assert not [name for name in everything if name.startswith(("celery.", "fairshift.system."))]
    settings.FAIRSHIFT = {"OFFERED_TASKS": [f"{__name__}.undec*"]}
    assert f"{__name__}.undecorated" in {item.name for item in offered()}
