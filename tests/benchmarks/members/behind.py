"""behind: four runs of one owner, submitted when another one has 3,000 waiting."""

import time
from collections.abc import Callable
from statistics import median

from tests.benchmarks.figures import ideal_ends
from tests.benchmarks.rows import Row
from tests.benchmarks.world import Call, World

SLOTS = 4
RUN_SECONDS = 0.1
LARGE = 3_000
SMALL = 4

Submit = Callable[[str, int], None]


def measure(world: World) -> list[Row]:
    """Compare the end of the four with processor sharing, for plain tasks and durable runs."""

    def plain(owner: str, count: int) -> None:
        world.publish(world.fair, (Call("bench.work", owner, (owner, RUN_SECONDS)),) * count)

    return [_measured(world, "plain", plain), _measured(world, "durable", durable)]


def durable(owner: str, count: int) -> None:
    """Submit durable runs, in one submission."""
    from jobs import submit_many
    from jobs.models import Owner

    Owner.objects.get_or_create(slug=owner)
    arguments = {"owner": owner, "seconds": RUN_SECONDS}
    submit_many("bench.work", [arguments] * count, owner=owner)


def _measured(world: World, kind: str, submit: Submit) -> Row:
    """Return the median time of several owners, one after the other, behind the same large one."""
    world.begin()
    submit("large", LARGE)
    took = []
    with world.workers(world.fair, slots=SLOTS) as stack:
        world.wait_ran(stack, "large", 1, patience=60)
        for number in range(max(5, world.rounds)):
            owner = f"small-{kind}-{number}"
            began = time.monotonic()
            submit(owner, SMALL)
            took.append(max(ran.ended for ran in world.wait_ran(stack, owner, SMALL)) - began)
    ideal = ideal_ends({"large": LARGE * RUN_SECONDS, "small": SMALL * RUN_SECONDS}, slots=SLOTS)
    return Row(
        what=f"{kind}, {SMALL} runs of {RUN_SECONDS:g} s behind {LARGE:,}, {SLOTS} slots",
        unit="s",
        figure=median(took),
        baseline=ideal["small"],
        against="processor sharing",
        at_most=round(ideal["small"] + 2 * RUN_SECONDS, 6),
        of_figure=True,
        samples={kind: took},
    )
