"""Programs that are started again when they die, as a supervisor would do."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from jobs.core.states import ENDED
from jobs.management.stack.stack import Program, Stack
from jobs.models import Run
from tests.flows.processes import ALONE, Processes, environment, start_program
from tests.waiting import wait_for

RESTART_SECONDS = (0.2,)


@contextmanager
def kept(
    scene: Processes, *programs: Program, restart: bool = True, **environ: str
) -> Iterator[Stack]:
    """Run these programs in the scene's environment until the block ends, which ends them at once.

    A scene may kill one of them many times: it starts again as soon as the first time.
    """
    stack = Stack(
        [_in_scene(program, scene, environ) for program in programs],
        log_folder=scene.folder / "kept",
        restart=restart,
        restart_seconds=RESTART_SECONDS,
        starter=start_program,
    )
    try:
        stack.start()
        stack.wait_ready()
        yield stack
    finally:
        stack.stop(grace_seconds=0)


def _in_scene(program: Program, scene: Processes, environ: dict[str, str]) -> Program:
    return replace(
        program,
        command=[*program.command, *(ALONE if "worker" in program.command else ())],
        environment={
            **environment(scene.tasks.path),
            **program.environment,
            **scene.urls,
            **environ,
        },
    )


def drained(stack: Stack | None = None, *, seconds: float = 60) -> None:
    """Wait until every run has ended; a program of the stack that dies is started again."""

    def rested() -> bool:
        if stack is not None:
            stack.watch()
        return not open_count()

    try:
        wait_for(rested, seconds=seconds)
    except AssertionError:
        left = list(Run.objects.exclude(state__in=ENDED).values_list("id", "state", "history")[:5])
        raise AssertionError(f"{open_count()} runs have not ended, such as {left}") from None


def open_count() -> int:
    """Return how many runs have not ended."""
    return Run.objects.exclude(state__in=ENDED).count()


def ended_count() -> int:
    """Return how many runs have ended."""
    return Run.objects.filter(state__in=ENDED).count()
