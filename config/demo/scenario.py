"""The scenario of the demo: one owner submits thousands of runs, another one four.

A third owner checks the health of every device each minute. Then firmware is upgraded on the
devices of five customers, in waves, and within the hours to which each customer has agreed. The
rollout of one of them is stopped by a failure, and resumed.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from urllib3.exceptions import HTTPError

from config.demo.agreed_hours import make_customers, write_customers
from config.demo.customers import make_calendars, names_of
from config.demo.devices import device_names, lab_names
from config.demo.foreseen import Forecasts
from config.demo.operator import Operator
from config.demo.processes import choose_places, live_workers, make_stack
from config.demo.screen import Line, Screen, Show
from config.demo.shares import Shares
from config.demo.summary import show_hanging, show_places, show_verdict
from config.demo.tasks import activate_ruleset
from config.demo.upgrade import begin_upgrade
from config.demo.verdict import Verdict, ask_devices, judge, line_of
from config.demo.world import (
    CHECKING_OWNER,
    LARGE_OWNER,
    SMALL_OWNER,
    end_world,
    make_checks,
    make_world,
    next_version,
)
from config.playground import mark_database
from jobs import submit_many
from jobs.core.locks import LockClass
from jobs.forecast.capacity import run_times_of
from jobs.forecast.will_it_fit import forecast_rest
from jobs.management.stack.stack import Stack
from jobs.models import Submission

LAB_DEVICES = 4
UPGRADED_PART = 10
"""One customer's device is added for each 10 devices."""
UPGRADED_LEAST, UPGRADED_MOST = 30, 300
SMALL_AFTER_SECONDS = 1.0
READY_SECONDS = 60.0
LOOK_SECONDS = 0.25


class DemoError(Exception):
    """The demo can't continue; the message says why."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line. A port that is taken is replaced by a free one."""

    devices: int
    workers: int
    slots: int
    port: int
    flower_port: int
    deadline_seconds: float


class Deadline:
    """The time by which the whole demo must be done."""

    def __init__(self, seconds: float, /) -> None:
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._at - time.monotonic())

    def wait(self, is_done: Callable[[], bool], /) -> bool:
        """Poll `is_done`; return whether it was true in time."""
        while not (done := is_done()) and self.left:
            time.sleep(LOOK_SECONDS)
        return done


@dataclass(frozen=True, slots=True)
class Played:
    """The end of a scenario: its verdict, and the processes that stay up."""

    verdict: Verdict
    stack: Stack


@contextmanager
def played_demo(options: Options, /, *, screen: Screen) -> Iterator[Played]:
    """Run the scenario and give the verdict; everything stays up until the context ends."""
    deadline = Deadline(options.deadline_seconds)
    large, small = device_names(options.devices), lab_names(LAB_DEVICES)
    with ExitStack() as ending:
        screen.heading("Preparing the database")
        ending.enter_context(_only_demo())
        call_command("migrate", verbosity=0, stdout=sys.stderr)
        mark_database()
        login = make_world(large=large, small=small)
        version = next_version()
        strangers = live_workers()

        screen.heading("Starting the site, the workers, beat, Flower and the devices")
        places = choose_places(port=options.port, flower_port=options.flower_port)
        customers = make_customers(
            devices=max(UPGRADED_LEAST, min(UPGRADED_MOST, options.devices // UPGRADED_PART)),
            now=time.time(),
            seconds=options.deadline_seconds,
        )
        make_calendars(customers, approver=login.user)
        write_customers(customers, places.customers)
        stack = make_stack(
            places,
            login=login,
            workers=options.workers,
            slots=options.slots,
            devices=len(large),
            lab_devices=len(small),
        )
        make_checks(large)
        ending.callback(end_world)
        ending.enter_context(stack)
        ending.callback(_ignore_interrupts)
        stack.wait_ready(seconds=min(READY_SECONDS, deadline.left))
        if not deadline.wait(lambda: len(live_workers() - strangers) >= options.workers):
            raise DemoError(f"The workers write no heartbeat; see {places.logs}.")
        show_places(places, login=login, screen=screen)

        with screen.follow() as show:
            looks = partial(_looks, stack, show, deadline)
            shares = Shares(LARGE_OWNER, SMALL_OWNER, CHECKING_OWNER)
            submissions = [_submit(LARGE_OWNER, large, label="ruleset", version=version)]
            for [line] in looks(lambda: map(line_of, submissions), shares):
                if line.seconds >= SMALL_AFTER_SECONDS:
                    break
            forecasts = Forecasts(lambda: [forecast_rest(submissions[0])])
            submissions.append(_submit(SMALL_OWNER, small, label="lab ruleset", version=version))
            in_time = False
            for lines in looks(lambda: map(line_of, submissions), shares):
                forecasts.look(lines[0].seconds, since=submissions[0].created_at)
                if in_time := all(line.done == line.total for line in lines):
                    break
            upgrade = begin_upgrade(customers, version=version)
            first = submissions[0]
            expected = run_times_of(first.owner, first.task, first.queue, now=timezone.now())
            of_upgrade = Forecasts(lambda: upgrade.forecasts(expected))
            operator = Operator(upgrade.submissions, login=login, site=places.site, screen=screen)
            shares = Shares(CHECKING_OWNER, *names_of(upgrade.customers))
            for [line] in looks(lambda: [upgrade.line()], shares):
                of_upgrade.look(line.seconds, since=upgrade.began_at())
                operator.look()
                if upgrade.is_done():
                    break
            in_time &= upgrade.is_done()
        if not in_time:
            show_hanging([*submissions, *upgrade.submissions], places=places, screen=screen)

        try:
            report = ask_devices(places.devices, version=version)
            upgraded = ask_devices(places.devices, what="firmware", version=version)
        except HTTPError as error:
            raise DemoError(f"The devices at {places.devices} do not answer: {error}") from error
        slots = options.workers * options.slots  # each of the two owners has half of them
        large_one, small_one = submissions
        verdict = judge(
            report,
            large=large_one,
            small=small_one,
            upgrade=upgrade.end(upgraded, forecasts=of_upgrade.made, stopped=operator.resumed),
            slots=slots,
            forecasts=forecasts.made,
        )
        show_verdict(verdict, submissions, screen=screen)
        show_places(places, login=login, screen=screen)
        yield Played(verdict, stack)


@contextmanager
def _only_demo() -> Iterator[None]:
    """Hold the demo's lock in PostgreSQL, which releases it when this process ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, 0)", [LockClass.DEMO])
        if not cursor.fetchone()[0]:
            raise DemoError("Another demo is running on this database; end it first.")
    try:
        yield
    finally:
        connection.close()


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C while everything is being stopped."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _submit(owner: str, names: Sequence[str], *, label: str, version: int) -> Submission:
    return submit_many(
        activate_ruleset,
        [{"device": name, "version": version} for name in names],
        owner=owner,
        label=f"{label} {version}",
        target="{device}",
    )


def _looks(
    stack: Stack,
    show: Show,
    deadline: Deadline,
    lines: Callable[[], Iterable[Line]],
    shares: Shares,
) -> Iterator[list[Line]]:
    """Show progress again and again until the deadline; yield the lines of each look."""
    while True:
        stack.watch()
        found = list(lines())
        show(found, shares.parts())
        yield found
        if not deadline.left:
            return
        time.sleep(LOOK_SECONDS)
