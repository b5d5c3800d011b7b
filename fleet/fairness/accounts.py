"""An owner's account: settings, limits and virtual time. Pure.

Virtual time is worker time divided by weight: the owner with the least is next. All times are in
microseconds. The scripts repeat these operations in the same order
(`transport/lua/shared/accounts.lua`), so that both get the same doubles.
"""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000


@dataclass
class Owner:
    """An owner's settings and account."""

    name: str

    weight: float = 1
    cap: int = 0
    """Most leases that run at the same time; 0 for any number."""
    is_paused: bool = False
    rate: float = 0
    """Starts a second; 0 for any number."""
    burst: float = 1
    """Starts that may come at once after a rest; 1 or more."""

    ready: int = 0
    running: int = 0
    """Leases that have not finished."""
    expected: int = 0
    """The sum of their expected run times."""
    ran: int = 0
    """The sum of their run times so far, at `ran_at`."""
    ran_at: int = 0
    """When a run began or ended last; before the first run, when the account was made."""

    virtual: float = 0
    """Virtual time of what has finished."""
    busy: int = 0
    """The busy period of the queue for which `virtual` is valid."""
    turn: float = 0
    """Virtual time of the submission that was chosen last."""
    tat: float = 0
    """The theoretical arrival time of GCRA (ITU-T I.371): when all starts are paid for."""
    served: int = 0
    finished: int = 0

    def in_flight(self, now: int) -> float:
        """Return the virtual time of what runs: the expected time, or the actual one if longer.

        Two sums suffice for any number of runs. So long or unknown runs are charged while they run.
        """
        return max(self.expected, self._ran(now)) / self.weight

    def effective(self, now: int) -> float:
        """Return the virtual time that decides who is chosen."""
        return self.virtual + self.in_flight(now)

    def may_run(self) -> bool:
        """Tell whether pause, cap and backlog let it be chosen. Its rate may still say later."""
        has_room = self.cap == 0 or self.running < self.cap
        return self.ready > 0 and not self.is_paused and has_room

    def rests_until(self, now: int) -> float:
        """Return until when its rate makes it rest; 0 if it need not."""
        if self.rate == 0:
            return 0
        free_at = self.tat - (self.burst - 1) * SECOND / self.rate
        return free_at if free_at > now else 0

    def enter(self, now: int, *, virtual: float, busy: int) -> None:
        """Become eligible, while the queue is at `virtual`.

        An owner that was idle is level with the others: idling earns no credit. In a new busy
        period, debts are dropped as well.
        """
        level = virtual - self.in_flight(now)
        self.virtual = max(self.virtual, level) if self.busy == busy else level
        self.busy = busy

    def start(self, now: int, *, expected: int, begins_at: int) -> None:
        """Charge a run that begins at `begins_at`, now or later."""
        self.ran, self.ran_at = self._ran(now) - (begins_at - now), now
        self.running += 1
        self.expected += expected
        if self.rate > 0:
            self.tat = max(self.tat, now) + SECOND / self.rate

    def cancel_start(self, now: int) -> None:
        """Refund the rate of a run that never began."""
        if self.rate > 0 and self.tat > now:
            self.tat = max(self.tat - SECOND / self.rate, now)

    def end(self, now: int, *, started_at: int, expected: int, run: int) -> None:
        """Replace the expected run time by the actual `run`."""
        self.ran, self.ran_at = self._ran(now) - (now - started_at), now
        self.running -= 1
        self.expected -= expected
        self.virtual += run / self.weight

    def change(
        self, now: int, *, weight: float, cap: int, is_paused: bool, rate: float, burst: float
    ) -> None:
        """Change its settings; what it has received stays charged."""
        carried = self.in_flight(now) * self.weight
        self.virtual = self.virtual + carried / self.weight - carried / weight
        self.weight, self.cap, self.is_paused = weight, cap, is_paused
        if self.tat > now:
            # Starts that are not paid for yet count at the new rate.
            self.tat = now + (self.tat - now) * self.rate / rate if rate > 0 else 0
        self.rate, self.burst = rate, burst

    def _ran(self, now: int) -> int:
        return self.ran + self.running * (now - self.ran_at)
