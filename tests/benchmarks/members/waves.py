"""waves: how fast a large wave is released, and how long others wait meanwhile."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from uuid import uuid4

from fleet import Admission, AdmissionRequest, Kind, Node, Report
from jobs.management.stack.programs import beat, system_worker
from tests.benchmarks.rows import Row
from tests.benchmarks.world import World

PARTS: Final = ("1%", "2%", "3%", "4%", "100%")
BEFORE_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 200.0
PAUSE_SECONDS: Final = 0.005
POLL_SECONDS: Final = 0.2

T = TypeVar("T")


def measure(world: World) -> list[Row]:
    """Release the last wave of a submission; submit, admit and record single runs always."""
    from jobs import Waves, submit_many
    from jobs.models import Owner
    from jobs.rollouts import verbs

    world.commits_are_durable()
    world.begin()
    count = world.pick(100_000, 5_000)
    for slug in ("large", "single"):
        Owner.objects.get_or_create(slug=slug)
    made = submit_many(
        "bench.work",
        [{"owner": "large", "number": number} for number in range(count)],
        owner="large",
        waves=Waves(sizes=PARTS),
    )

    def queue(wave: int) -> float:
        verbs.release(made)
        return _wait(world, made, wave)

    # Of the first waves, which are released before.
    released = iter(list(made.runs.order_by("id")[: count // 20].values_list("id", flat=True)))
    with world.up(system_worker(), beat()) as stack:
        stack.wait_ready(seconds=PATIENCE_SECONDS)
        for wave in range(2, len(PARTS)):
            queue(wave)
        with _others(released) as usual:
            time.sleep(BEFORE_SECONDS)
        with _others(released) as meanwhile:
            took = queue(len(PARTS))
    size = _rollout(made).waves[-1]["size"]
    return [
        Row(
            what=f"a wave of {size:,} runs: until all are queued",
            unit="s",
            figure=took,
            at_most=10.0,
            of_figure=True,
        ),
        *(
            Row(
                what=f"longest {name} meanwhile",
                unit="ms",
                figure=1000 * max(meanwhile[name]),
                baseline=1000 * max(usual[name]),
                against=f"without it, for {BEFORE_SECONDS:g} s",
                at_most=100.0,
                of_figure=True,
                samples={"meanwhile": meanwhile[name], "usual": usual[name]},
            )
            for name in meanwhile
        ),
    ]


def _rollout(submission: Any) -> Any:
    from jobs.models import Rollout

    return Rollout.objects.get(pk=submission.pk)


def _wait(world: World, submission: Any, wave: int) -> float:
    """Return the seconds until all runs of a wave are queued."""
    from jobs.models import Run

    last = _rollout(submission).waves[wave - 1]["last"]
    held = Run.objects.filter(submission=submission, state="held", id__lte=last)
    return world.wait(
        lambda: not held.exists(),
        what=lambda: f"{held.count()} runs of wave {wave} are still held",
        seconds=PATIENCE_SECONDS,
        every=POLL_SECONDS,
    )


@contextmanager
def _others(large: Iterator[Any]) -> Iterator[dict[str, list[float]]]:
    """Submit a run, admit and record it with a released one, again and again, in a thread.

    Yields the seconds of each statement.
    """
    from django.db import connection

    from jobs import submit
    from jobs.runs.admission import admit
    from jobs.runs.recording import record
    from jobs.system.heartbeat import beat

    seconds: dict[str, list[float]] = defaultdict(list)
    is_over = threading.Event()
    node = Node(uuid4(), "bench@here", 1, "prefork", 4, ("jobs",))

    def timed(name: str, act: Callable[..., T], *arguments: Any, **options: Any) -> T:
        began = time.monotonic()
        value = act(*arguments, **options)
        seconds[name].append(time.monotonic() - began)
        return value

    def one() -> None:
        run = timed("submit", submit, "bench.work", "single", 1, owner="single")
        asked = [AdmissionRequest(str(each), "bench.work") for each in (run.id, next(large))]
        answers = timed("admission", admit, node.id, asked)
        admitted = [each for each in answers.values() if isinstance(each, Admission)]
        now = time.monotonic()
        ends = [Report(each.run_id, each.token, Kind.SUCCEEDED, now) for each in admitted]
        timed("recording", record, ends)

    def loop() -> None:
        beat(node, [])
        one()  # connects, and plans
        seconds.clear()
        beaten = time.monotonic()
        while not is_over.wait(PAUSE_SECONDS):
            if time.monotonic() - beaten > 2:
                beat(node, [])
                beaten = time.monotonic()
            one()
        connection.close()

    with ThreadPoolExecutor(1) as apart:
        looping = apart.submit(loop)
        try:
            time.sleep(0.5)
            yield seconds
        finally:
            is_over.set()
        looping.result()
