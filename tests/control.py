"""Remote control of the workers that a scene has started."""

from celery import Celery

from tests.waiting import wait_for


def await_heard(app: Celery, node: str) -> None:
    """Return when this worker answers.

    A worker says "ready" a moment before it subscribes to commands, and Redis keeps none of them
    for those who subscribe later.
    """
    wait_for(
        lambda: app.control.ping([node], timeout=1, limit=1),
        seconds=30,
        what=f"an answer of {node}",
    )
