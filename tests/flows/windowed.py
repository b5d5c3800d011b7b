"""Customers with service windows in a scene: what each has agreed to, change by change."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tests.judge import Verdict, read_task_events
from tests.judge.sqlreader import read_admissions
from tests.judge.window_judge import Asked, Hours, Span, judge_windows

ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns")
Act = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Does what `tests.flows.calendar_edits` has under this name, in some process of the scene."""


@dataclass
class Customer:
    """What an owner has agreed to by now."""

    owner: str
    zone: str
    opens: list[datetime]
    seconds: int
    cut_off_seconds: int = 0
    freezes: list[Span] = field(default_factory=list)
    is_approved: bool = True

    def spans(self) -> list[Span]:
        """Return when it is open, in order; nothing of it touches."""
        length = timedelta(seconds=self.seconds)
        spans = [(opens, opens + length) for opens in self.opens] if self.is_approved else []
        for begin, end in self.freezes:
            spans = [
                part
                for first, last in spans
                for part in ((first, min(last, begin)), (max(first, end), last))
                if part[0] < part[1]
            ]
        return spans

    def shown(self, moments: Iterable[datetime]) -> list[str]:
        """Return these moments in local time."""
        place = ZoneInfo(self.zone)
        return [one.astimezone(place).replace(tzinfo=None).isoformat() for one in moments]


@dataclass
class Windowed:
    """The customers of a scene. Every change is made by `act`, and recorded for the judge."""

    act: Act
    customers: dict[str, Customer] = field(default_factory=dict)
    hours: dict[str, list[Hours]] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)

    def agree(
        self,
        owner: str,
        *,
        first: datetime,
        count: int,
        seconds: int = 3,
        shut_seconds: float = 3,
        zone: str = "UTC",
        **fields: Any,
    ) -> None:
        """Have an owner whose window opens `count` times, for `seconds` each."""
        step = timedelta(seconds=seconds + shut_seconds)
        opens = [first + number * step for number in range(count)]
        cut_off = fields.get("cut_off_seconds", 0)
        customer = Customer(owner, zone, opens, seconds, cut_off_seconds=cut_off)
        self.customers[owner] = customer
        self._change(
            customer, "agree", starts=customer.shown(opens), seconds=seconds, zone=zone, **fields
        )

    def shift(self, owner: str, *, by: float = 0.0, seconds: int | None = None) -> None:
        """Have the window open later by `by` seconds from now on, or for another time."""
        customer = self.customers[owner]
        customer.opens = [opens + timedelta(seconds=by) for opens in customer.opens]
        customer.seconds = seconds or customer.seconds
        starts = customer.shown(customer.opens)
        self._change(customer, "move", starts=starts, seconds=customer.seconds)

    def freeze(self, owner: str, *, seconds: int) -> None:
        """Close for `seconds`, from a second ago on."""
        customer = self.customers[owner]
        begin = datetime.now(UTC) - timedelta(seconds=1)
        customer.freezes.append((begin, begin + timedelta(seconds=seconds)))
        [starts] = customer.shown([begin])
        self._change(customer, "freeze", starts=starts, seconds=seconds, zone=customer.zone)

    def thaw(self, owner: str) -> None:
        """Take the freezes back."""
        self.customers[owner].freezes = []
        self._change(self.customers[owner], "thaw")

    def revoke(self, owner: str) -> None:
        """Take the approval back."""
        self.customers[owner].is_approved = False
        self._change(self.customers[owner], "revoke")

    def approve(self, owner: str) -> None:
        """Approve it again."""
        self.customers[owner].is_approved = True
        self._change(self.customers[owner], "approve")

    def submitted(self, owner: str, ids: Iterable[str], *, needed: float = 0) -> None:
        """Note runs that must keep an owner's hours."""
        asked = Asked(owner=owner, needed=timedelta(seconds=needed))
        self.asked |= dict.fromkeys(ids, asked)

    def verdict(self, url: str, log: Path) -> Verdict:
        """Run the judge and print its report. A bad verdict fails."""
        found = judge_windows(
            self.hours,
            asked=self.asked,
            admissions=read_admissions(url),
            starts=read_task_events(log),
            boot=datetime.now(UTC) - timedelta(seconds=time.monotonic()),
        )
        print(found.report())
        assert found.ok, found.report()
        return found

    def _change(self, customer: Customer, act: str, **facts: Any) -> None:
        said = self.act(act, {"owner": customer.owner, **facts})
        self.hours.setdefault(customer.owner, []).append(
            Hours(
                spans=customer.spans(),
                begins=datetime.fromisoformat(said["before"]),
                sure_from=datetime.fromisoformat(said["after"]),
                cut_off=timedelta(seconds=customer.cut_off_seconds),
            )
        )
