"""A firmware upgrade of the customers' devices, in waves and within the agreed hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from config.demo.agreed_hours import AGREED, FROZEN, REFUSING, UNAPPROVED, Customer
from config.demo.customers import names_of
from config.demo.foreseen import Foreseen
from config.demo.screen import Line
from config.demo.tasks import upgrade_firmware
from config.demo.verdict import UpgradeVerdict, line_of_all
from jobs import Waves, submit_many
from jobs.core.states import ENDED, State
from jobs.forecast.capacity import RunTimes
from jobs.forecast.estimate import Forecast
from jobs.forecast.will_it_fit import forecast_rest
from jobs.models import Run, Submission
from jobs.runs.cancellation import cancel_runs

WAVES = Waves(sizes=["10%", "100%"], stop_at="5%")
"""One failure stops a first wave of up to 19 devices."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A submission for each customer."""

    customers: Sequence[Customer]
    version: int
    submissions: Sequence[Submission]

    def line(self) -> Line:
        """Return its progress."""
        staying = self._count(UNAPPROVED) + self._count(FROZEN)
        return line_of_all(self.submissions, label=f"firmware {self.version}", staying=staying)

    def is_done(self) -> bool:
        """Say whether all runs of customers that have agreed have ended."""
        open_runs = self._runs(AGREED).exclude(state__in=ENDED)
        return not open_runs.exists()

    def forecasts(self, expected: RunTimes | None) -> list[Forecast | None]:
        """Return a forecast for each customer that has agreed, whose rollout is not stopped.

        `expected` are run times for customers without an ended run.
        """
        return [forecast_rest(one, expected=expected) for one in self._foreseen()]

    def _foreseen(self) -> list[Submission]:
        """Return those of which no person decides when they go on."""
        agreed = [name for name in names_of(self.customers, AGREED) if name != REFUSING]
        return [one for one in self.submissions if one.owner.slug in agreed]

    def end(
        self, report: dict[str, Any], *, forecasts: Sequence[Foreseen], stopped: Sequence[str]
    ) -> UpgradeVerdict:
        """Return the verdict from the devices' report and the rows; cancel held runs.

        `stopped` has the addresses of the rollouts that were stopped.
        """
        line = self.line()
        held = {
            status: list(self._runs(status).filter(state=State.HELD).values_list("id", flat=True))
            for status in (UNAPPROVED, FROZEN)
        }
        cancel_runs([*held[UNAPPROVED], *held[FROZEN]])
        return UpgradeVerdict(
            asked=self._count(AGREED),
            upgraded=report["upgraded"],
            outside=len(report["outside"]),
            doubled=report["doubled"],
            not_approved=self._count(UNAPPROVED),
            held_for_approval=len(held[UNAPPROVED]),
            frozen=self._count(FROZEN),
            held_by_freeze=len(held[FROZEN]),
            openings=self._openings(line.seconds),
            seconds=round(line.seconds, 2),
            forecasts=forecasts,
            foreseen_seconds=round(line_of_all(self._foreseen(), label="").seconds, 2),
            stopped=stopped,
            first_outside=_first(report["outside"]),
        )

    def _runs(self, status: str) -> Any:
        names = names_of(self.customers, status)
        return Run.objects.filter(submission__in=self.submissions, owner__slug__in=names)

    def _count(self, status: str) -> int:
        return sum(len(one.devices) for one in self.customers if one.status == status)

    def began_at(self) -> datetime:
        return min(one.created_at for one in self.submissions)

    def _openings(self, seconds: float) -> int:
        began = self.began_at().timestamp()
        return sum(
            began <= moment < began + seconds
            for one in self.customers
            if one.status == AGREED
            for moment in one.opens
        )


def begin_upgrade(customers: Sequence[Customer], *, version: int) -> Upgrade:
    """Submit an upgrade for each device of each customer."""
    submissions = [
        submit_many(
            upgrade_firmware,
            [{"device": name, "version": version} for name in customer.devices],
            owner=customer.name,
            label=f"firmware {version}",
            target="{device}",
            window="required",
            waves=WAVES if customer.status == AGREED else None,
        )
        for customer in customers
    ]
    return Upgrade(customers, version, submissions)


def _first(outside: Sequence[dict[str, Any]]) -> str:
    """Return the first upgrade outside of the hours in words; '' if there is none."""
    for one in outside:
        return f"{one['device']} {one['what']} {one['late']:.2f} s after its hours"
    return ""
