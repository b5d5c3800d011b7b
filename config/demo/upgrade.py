"""A firmware upgrade of the customers' devices, in the hours to which each has agreed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from config.demo.agreed_hours import AGREED, FROZEN, UNAPPROVED, Customer
from config.demo.customers import names_of
from config.demo.screen import Line
from config.demo.tasks import upgrade_firmware
from config.demo.verdict import UpgradeVerdict, line_of_all
from jobs import submit_many
from jobs.cancellation import cancel_runs
from jobs.foresight import will_it_fit
from jobs.models import Run, Submission
from jobs.states import ENDED, State


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A submission for each customer."""

    customers: Sequence[Customer]
    version: int
    submissions: Sequence[Submission]
    foreseen_at: datetime | None
    """When all that may begin will be done, as it was told before the submit."""

    def line(self) -> Line:
        """Return how far it is."""
        staying = self._count(UNAPPROVED) + self._count(FROZEN)
        return line_of_all(self.submissions, label=f"firmware {self.version}", staying=staying)

    def is_done(self) -> bool:
        """Say whether everything has ended that may begin."""
        open_runs = self._runs(AGREED).exclude(state__in=ENDED)
        return not open_runs.exists()

    def end(self, report: dict[str, Any]) -> UpgradeVerdict:
        """Return what came of it, by the devices' report and the rows; cancel what is held."""
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
            foreseen_seconds=self._foreseen_seconds(),
        )

    def _runs(self, status: str) -> Any:
        names = names_of(self.customers, status)
        return Run.objects.filter(submission__in=self.submissions, owner__slug__in=names)

    def _count(self, status: str) -> int:
        return sum(len(one.devices) for one in self.customers if one.status == status)

    def _foreseen_seconds(self) -> float | None:
        if self.foreseen_at is None:
            return None
        return round((self.foreseen_at - self._began_at()).total_seconds(), 2)

    def _began_at(self) -> datetime:
        return min(one.created_at for one in self.submissions)

    def _openings(self, seconds: float) -> int:
        began = self._began_at().timestamp()
        return sum(
            began <= moment < began + seconds
            for one in self.customers
            if one.status == AGREED
            for moment in one.opens
        )


def begin_upgrade(
    customers: Sequence[Customer], *, version: int, expected_seconds: float
) -> Upgrade:
    """Submit an upgrade for each device of each customer, and foresee when all will be done.

    `expected_seconds` is how long one is expected to take.
    """
    ends, submissions = [], []
    for customer in customers:
        foreseen = will_it_fit(
            upgrade_firmware,
            owner=customer.name,
            targets=customer.devices,
            expected_seconds=expected_seconds,
            window="required",
        )
        if foreseen.ends_at is not None and customer.status == AGREED:
            ends.append(foreseen.ends_at)
        submissions.append(
            submit_many(
                upgrade_firmware,
                [{"device": name, "version": version} for name in customer.devices],
                owner=customer.name,
                label=f"firmware {version}",
                target="{device}",
                window="required",
            )
        )
    return Upgrade(customers, version, submissions, max(ends, default=None))
