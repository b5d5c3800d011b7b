"""What is known of rollouts from outside: which waves may start, and what operators do."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from uuid import UUID

from jobs.core.errors import ActionRefused
from jobs.core.states import ENDED, State
from jobs.models import Rollout, RolloutState, Run, Submission
from jobs.rollouts import rounds, verbs
from jobs.rollouts.waves import Waves
from jobs.runs.bulk import reopen_failed
from tests.jobs.journeys.story import Story


@dataclass(eq=False)
class Rolling:
    """One committed rollout. Times are those of the fake clock."""

    submission: int
    waves: list[list[UUID]]
    stop_at: int | None
    between: float
    needs_approval: bool
    released: int = 1
    """The newest wave that may be released; the rollout itself may be behind."""
    accepted: dict[int, int] = field(default_factory=dict)
    """Failed runs, by the number of their wave, that an operator has accepted."""
    is_stopped: bool = False
    """By an operator, or by failures."""
    is_over: bool = False
    over_at: float | None = None
    """When the released waves had ended for the first time."""

    def look(self, states: Mapping[UUID, str], *, now: float) -> None:
        """Note whether the waves are over by these states, and stop if too many have failed."""
        for number, failed in self._failed(states).items():
            accepted = self.accepted.get(number, 0)
            if self.stop_at is not None and failed - accepted > self.stop_at:
                self.is_stopped = True
        if any(states[run_id] not in ENDED for run_id in chain(*self.waves[: self.released])):
            return
        self.over_at = now if self.over_at is None else self.over_at
        is_last = self.released == len(self.waves)
        is_due = not self.needs_approval and self.over_at + self.between <= now
        if is_due and not is_last and not self.is_stopped:
            self.advance(self.released + 1)

    def lower(self, states: Mapping[UUID, str]) -> None:
        """Accept no more failures than there are: a failed run may have been retried."""
        for number, failed in self._failed(states).items():
            self.accepted[number] = min(self.accepted.get(number, 0), failed)

    def _failed(self, states: Mapping[UUID, str]) -> dict[int, int]:
        return {
            number: [states[run_id] for run_id in wave].count(State.FAILED)
            for number, wave in enumerate(self.waves[: self.released], 1)
        }

    def advance(self, wave: int) -> None:
        if wave > self.released:
            self.released, self.over_at = wave, None

    def resume(self, states: Mapping[UUID, str]) -> None:
        """Accept the failures so far."""
        self.is_stopped = False
        self.accepted = self._failed(states)

    def resize(self, wave: int, sizes: Sequence[int]) -> None:
        """Cut the runs after a wave anew: each of `sizes`, and what is left."""
        left = sorted(run_id for later in self.waves[wave:] for run_id in later)
        self.waves = self.waves[:wave]
        for size in sizes:
            self.waves.append(left[:size])
            left = left[size:]
        self.waves = [one for one in (*self.waves, left) if one]

    def lets_start(self, run_id: UUID) -> bool:
        released = not self.is_stopped and run_id in chain(*self.waves[: self.released])
        return self.is_over or released


class Rollouts(list[Rolling]):
    """All that were committed."""

    def add(self, submission: int, waves: Waves, ids: list[UUID]) -> Rolling:
        between = waves.pause.total_seconds() if waves.pause else 0.0
        stop_at = waves.stop_at if isinstance(waves.stop_at, int) else None
        rolling = Rolling(submission, [ids], stop_at, between, waves.needs_approval)
        rolling.resize(0, [size for size in waves.sizes if isinstance(size, int)])
        self.append(rolling)
        return rolling

    def lets_start(self, run_id: UUID) -> bool:
        """Say whether a run may start, as far as its rollout decides."""
        return all(
            one.lets_start(run_id) for one in self if run_id in chain.from_iterable(one.waves)
        )

    def look(self, *, now: float) -> None:
        """Note what became of the waves."""
        states = _states() if self else {}
        over = set(Rollout.objects.filter(state=RolloutState.ENDED).values_list("pk", flat=True))
        for rolling in self:
            rolling.look(states, now=now)
            rolling.is_over = rolling.submission in over
            # A retry may let it go on, by the same rules.
            rolling.is_stopped = rolling.is_stopped and not rolling.is_over

    def lower(self) -> None:
        states = _states() if self else {}
        for rolling in self:
            rolling.lower(states)

    def steer(
        self, rolling: Rolling, how: str, stories: Mapping[str, Story], *, now: float
    ) -> None:
        """Do what an operator may do; what is refused changes nothing."""
        submission = Submission.objects.get(pk=rolling.submission)
        with suppress(ActionRefused):
            if how == "pause":
                verbs.pause(submission)
                rolling.is_stopped = True
            elif how == "resume":
                verbs.resume(submission)
                rolling.resume(_states())
                for run_id in chain(*rolling.waves):
                    # It counts from the resume.
                    stories[str(run_id)].deadline_at = inf
            elif how == "release":
                rolling.advance(verbs.release(submission).wave)
            elif how == "resize":
                rolling.resize(verbs.resize(submission, [1, "100%"]).wave, [1])
            elif how == "cancel":
                submission.cancel()
                rolling.is_stopped = True
                for run_id, state in _states().items():
                    story = stories[str(run_id)]
                    story.is_over = story.is_over or state == State.CANCELLED
            else:
                failed = submission.runs.filter(state=State.FAILED)
                asked = [stories[str(run_id)] for run_id in failed.values_list("id", flat=True)]
                reopen_failed(submission)
                self.lower()
                for story in asked:
                    story.reopen(now=now)
        self.look(now=now)

    def stuck(self) -> Iterator[tuple[Rolling, str]]:
        """Yield the rollouts that wait for an operator, and what is to be done."""
        for rolling in self:
            rollout = Rollout.objects.get(pk=rolling.submission)
            if rollout.state in rounds.STOPPED:
                yield rolling, "resume"
            elif rollout.needs_approval:
                yield rolling, "release"

    def are_over(self) -> bool:
        return not Rollout.objects.exclude(state=RolloutState.ENDED).exists()


def _states() -> dict[UUID, str]:
    return dict(Run.objects.values_list("id", "state"))
