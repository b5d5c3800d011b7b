"""What an owner has received, in virtual time: weight, limits and arithmetic, without I/O.

Virtual time is worker time divided by weight: who has the least of it is next. All times are in
microseconds. The scripts repeat these lines (`transport/lua/shared/accounts.lua`), in this order,
so that both come to the same doubles.
"""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000


@dataclass
class Owner:
    """An owner's settings, and its account."""

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
    """The expected run times of these, together."""
    ran: int = 0
    """How long these had run at `ran_at`, together."""
    ran_at: int = 0

    virtual: float = 0
    """Virtual time of what has finished."""
    busy: int = 0
    """The busy period of the queue in which that is valid."""
    turn: float = 0
    """Virtual time of the submission that was chosen last."""
    tat: float = 0
    """The theoretical arrival time of GCRA (ITU-T I.371): when the rate is paid for."""
    served: int = 0
    finished: int = 0

    def in_flight(self, now: int) -> float:
        """Return the virtual time of what runs: as expected, or more once it has run longer.

        Two sums are enough, however much runs. So runs that take longer than expected, or of
        which nothing is known, are paid for while they run.
        """
        return max(self.expected, self._ran(now)) / self.weight

    def effective(self, now: int) -> float:
        """Return the virtual time by which owners are chosen."""
        return self.virtual + self.in_flight(now)

    def may_run(self) -> bool:
        """Tell whether pause, cap and backlog let it be chosen. Its rate may still say later."""
        has_room = self.cap == 0 or self.running < self.cap
        return self.ready > 0 and not self.is_paused and has_room

    def rests_until(self, now: int) -> float:
        """Return until when its rate makes it rest; 0 when it does not."""
        if self.rate == 0:
            return 0
        free_at = self.tat - (self.burst - 1) * SECOND / self.rate
        return free_at if free_at > now else 0

    def enter(self, now: int, *, virtual: float, busy: int) -> None:
        """Come among those that may be chosen, where the queue is at `virtual`.

        Whoever has been away comes back level with the others: idling earns no credit. In a new
        busy period nobody has waited for anybody, so debts are forgiven as well.
        """
        level = virtual - self.in_flight(now)
        self.virtual = max(self.virtual, level) if self.busy == busy else level
        self.busy = busy

    def start(self, now: int, *, expected: int, begins_at: int) -> None:
        """Charge a run that is to begin at that time, now or later."""
        self.ran, self.ran_at = self._ran(now) - (begins_at - now), now
        self.running += 1
        self.expected += expected
        if self.rate > 0:
            self.tat = max(self.tat, now) + SECOND / self.rate

    def cancel_start(self, now: int) -> None:
        """Pay its rate back for what was given out and never began."""
        if self.rate > 0 and self.tat > now:
            self.tat = max(self.tat - SECOND / self.rate, now)

    def end(self, now: int, *, started_at: int, expected: int, run: int) -> None:
        """Pay `run` in place of what was expected."""
        self.ran, self.ran_at = self._ran(now) - (now - started_at), now
        self.running -= 1
        self.expected -= expected
        self.virtual += run / self.weight

    def change(
        self, now: int, *, weight: float, cap: int, is_paused: bool, rate: float, burst: float
    ) -> None:
        """Set what it may have from now on; what it has received stays received."""
        carried = self.in_flight(now) * self.weight
        self.virtual = self.virtual + carried / self.weight - carried / weight
        self.weight, self.cap, self.is_paused = weight, cap, is_paused
        if self.tat > now:
            # Starts that are not paid for yet are paid for at the new rate.
            self.tat = now + (self.tat - now) * self.rate / rate if rate > 0 else 0
        self.rate, self.burst = rate, burst

    def _ran(self, now: int) -> int:
        return self.ran + self.running * (now - self.ran_at)
