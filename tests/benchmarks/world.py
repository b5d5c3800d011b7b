"""Where members measure: one Redis, one database, worker processes, and the tasks' log."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from celery.utils import uuid
from django.db import connection
from redis import Redis

from fleet.contract import HEADER
from jobs.management.stack.stack import Program, Stack
from tests.benchmarks.figures import Ran
from tests.benchmarks.servers import COUNTER, DURABLE, shown
from tests.benchmarks.sides import Side

CHUNK = 500
POLL_SECONDS = 0.002
START_SECONDS = 60.0
MEMBER_SECONDS = 150.0
"""The most that the rounds of one member take: with its beginning, it ends within 3 minutes."""


class BenchmarkError(RuntimeError):
    """A member could not be measured; the message says why, with the end of the log."""


@dataclass(frozen=True)
class Call:
    """One task to be published: its name, its owner, and its arguments."""

    task: str
    owner: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class World:
    """The place of one invocation. `environment` is what every worker has in its own."""

    folder: Path
    redis: Redis
    environment: Mapping[str, str]
    stock: Side
    fair: Side
    rounds: int
    is_quick: bool
    is_large: bool = False

    @property
    def log(self) -> Path:
        return Path(self.environment["BENCH_LOG"])

    def pick(self, normal: int, quick: int, *, large: int | None = None) -> int:
        """Return how large a member is in this invocation."""
        if self.is_large and large is not None:
            return large
        return quick if self.is_quick else normal

    def turns(self, *, seconds: float = MEMBER_SECONDS) -> Iterator[int]:
        """Number the rounds of a member: as many as wanted, of which `seconds` can hold all.

        There is one at least. A round is taken to last as long as those before it.
        """
        began = time.monotonic()
        for number in range(self.rounds):
            if number and (time.monotonic() - began) * (number + 1) / number > seconds:
                return
            yield number

    def commits_are_durable(self) -> None:
        """Fail when PostgreSQL may lose a commit."""
        for setting in DURABLE:
            if shown(setting) != "on":
                raise BenchmarkError(f"{setting} is {shown(setting)}: a commit may be lost")

    def begin(self) -> None:
        """Begin a measurement: nothing waits, nothing has been written. No worker may be up."""
        self.redis.flushdb(asynchronous=True)
        # A worker that meets an emptied queue publishes again what waits in the rows.
        with connection.cursor() as cursor:
            cursor.execute(
                "TRUNCATE jobs_outbox, jobs_log, jobs_attempt, jobs_run, jobs_submission CASCADE"
            )
        for path in self.folder.glob("*.log"):
            path.unlink()
        self.log.touch()

    def publish(self, side: Side, calls: Iterable[Call]) -> int:
        """Publish plain tasks, each under its owner; return how many."""
        count = 0
        with (
            side.app.connection_for_write() as connection,
            side.app.amqp.Producer(connection, auto_declare=False) as producer,
        ):
            side.app.amqp.queues[side.queue](producer.channel).declare()
            waiting = iter(calls)
            while chunk := list(islice(waiting, CHUNK)):
                with producer.batch(max_size=CHUNK):
                    for call in chunk:
                        _send(side, producer, call)
                count += len(chunk)
        return count

    @contextmanager
    def workers(self, side: Side, *, slots: int, count: int = 1) -> Iterator[Stack]:
        """Start workers of one side; they are killed at the end, without a grace."""
        programs = [side.program(f"{side.name}-{number}", slots) for number in range(count)]
        with self.up(*programs) as stack:
            yield stack

    @contextmanager
    def up(self, *programs: Program) -> Iterator[Stack]:
        """Start programs of different names; they are killed at the end, without a grace."""
        stack = Stack(
            [
                replace(program, environment={**self.environment, **program.environment})
                for program in programs
            ],
            log_folder=self.folder,
        )
        stack.start()
        try:
            yield stack
        finally:
            stack.stop(grace_seconds=0)

    def warm_up(self, side: Side, stack: Stack, *, slots: int) -> None:
        """Return when every worker of a side works, and all that was published has been done."""
        stack.wait_ready(seconds=START_SECONDS)
        want = 4 * slots
        before = self.done()
        self.publish(side, (Call("bench.count", "warm") for _ in range(want)))
        self.wait_done(stack, before + want)

    def wait(
        self,
        condition: Callable[[], bool],
        *,
        what: Callable[[], str],
        seconds: float,
        every: float,
        stack: Stack | None = None,
    ) -> float:
        """Return the seconds until a condition holds; a program that ends meanwhile fails it.

        Raises BenchmarkError when it does not hold in time: `what` says what is missing then.
        """
        began = time.monotonic()
        while not condition():
            if stack is not None:
                stack.watch()
            if time.monotonic() - began > seconds:
                raise BenchmarkError(f"{what()}; {self.log_ends()}")
            time.sleep(every)
        return time.monotonic() - began

    def done(self) -> int:
        """Return how many tasks have counted."""
        return int(self.redis.get(COUNTER) or 0)

    def wait_done(self, stack: Stack, want: int, *, patience: float = START_SECONDS) -> float:
        """Return the tasks/s from the first completion that is seen to the last one.

        Raises BenchmarkError when there is no progress for `patience` seconds.
        """
        first: tuple[float, int] | None = None
        seen, seen_at = self.done(), time.monotonic()
        while seen < want:
            time.sleep(POLL_SECONDS)
            now_done, now = self.done(), time.monotonic()
            if now_done > seen:
                seen, seen_at = now_done, now
                first = first or (now, now_done)
            elif now - seen_at > patience:
                raise BenchmarkError(f"{seen} of {want} tasks were done; {self.log_ends()}")
            stack.watch()
        return (seen - first[1]) / (seen_at - first[0]) if first and seen > first[1] else 0.0

    def ran(self) -> list[Ran]:
        """Return what tasks have logged, in the order of their ends."""
        text, _, _ = self.log.read_text().rpartition("\n")
        return [
            Ran(owner, float(began), float(ended), int(number))
            for owner, number, began, ended in map(str.split, text.splitlines())
        ]

    def wait_ran(self, stack: Stack, owner: str, want: int, *, patience: float = 30) -> list[Ran]:
        """Return the runs of one owner when there are this many."""

        def runs() -> list[Ran]:
            return [ran for ran in self.ran() if ran.owner == owner]

        self.wait(
            lambda: len(runs()) >= want,
            what=lambda: f"{owner} had {len(runs())} of {want} runs in {patience:g} s",
            seconds=patience,
            every=0.01,
            stack=stack,
        )
        return runs()

    def log_ends(self, *, lines: int = 5) -> str:
        """Return the ends of the workers' logs."""
        parts = []
        for path in sorted(self.folder.glob("*-*.log")):
            end = [line[:150] for line in path.read_text().splitlines()[-lines:]]
            parts += [f"the end of {path.name}:", *end]
        return "\n  ".join(parts)


def _send(side: Side, producer: Any, call: Call) -> None:
    message = side.app.amqp.as_task_v2(
        uuid(), call.task, args=call.arguments, kwargs={}, ignore_result=True
    )
    side.app.amqp.send_task_message(
        producer,
        call.task,
        message,
        queue=side.queue,
        headers={HEADER: {"owner": call.owner}},
        declare=(),
        retry=False,
    )
