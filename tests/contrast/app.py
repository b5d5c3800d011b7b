"""A Celery app without Django, on the stock transport or on the fair one: CONTRAST says which.

CONTRAST_CONF has more of its settings, CONTRAST_OPTIONS of its transport's.
Its tasks write what they do to a log of their own, which is what the scenes look at.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

from fleet.wiring import register

IS_FAIR = os.environ["CONTRAST"] == "fair"
if IS_FAIR:
    register()

app = Celery(
    "contrast",
    broker=os.environ["CONTRAST_BROKER"],
    backend=os.environ.get("CONTRAST_BACKEND"),
)
app.conf.update(
    task_default_queue=os.environ["CONTRAST_QUEUE"],
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    broker_transport_options=(
        {
            # The queue itself, and others whose names begin with its.
            "fair_queues": [
                os.environ["CONTRAST_QUEUE"] + more
                for more in os.environ.get("CONTRAST_FAIR", "").split(",")
            ],
            "lease_seconds": float(os.environ.get("CONTRAST_LEASE", "30")),
        }
        if IS_FAIR
        else {
            # What stock has for a lease.
            "visibility_timeout": float(os.environ.get("CONTRAST_LEASE", "3600")),
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            "unacked_key": f"unacked:{os.environ['CONTRAST_QUEUE']}",
            "unacked_index_key": f"unacked_index:{os.environ['CONTRAST_QUEUE']}",
            "unacked_mutex_key": f"unacked_mutex:{os.environ['CONTRAST_QUEUE']}",
        }
    ),
)
app.conf.update(json.loads(os.environ.get("CONTRAST_CONF", "{}")))
app.conf.broker_transport_options |= json.loads(os.environ.get("CONTRAST_OPTIONS", "{}"))


def _log(word: str, name: object) -> None:
    line = f"{word} {name} {os.getpid()} {time.time()}\n"
    with Path(os.environ["CONTRAST_LOG"]).open("a") as log:
        log.write(line)


@app.task(name="contrast.run")
def run(name: object, seconds: float = 0.0) -> None:
    """Say that it begins, take its time, say that it ends."""
    _log("start", name)
    time.sleep(seconds)
    _log("end", name)


@app.task(name="contrast.poison", reject_on_worker_lost=True)
def poison(name: object) -> None:
    """Kill the process that runs it."""
    _log("start", name)
    os._exit(1)


@app.task(name="contrast.nap")
def nap(name: object, seconds: float) -> None:
    """As `run`, for what takes so long that it is never held in advance."""
    run(name, seconds)


@app.task(name="contrast.hold")
def hold(name: object, gate: str) -> None:
    """Keep a slot until this file exists."""
    _log("start", name)
    while not os.path.exists(gate):
        time.sleep(0.01)
    _log("end", name)


@app.task(name="contrast.early", acks_late=False)
def early(name: object, seconds: float) -> None:
    """As `run`, by a task that asks to be acknowledged before it runs."""
    run(name, seconds)


@app.task(name="contrast.limited")
def limited(name: object) -> None:
    """As `run`, for a rate limit of its own."""
    run(name)


@app.task(name="contrast.once_more", bind=True, max_retries=1)
def once_more(self: Any, name: object, countdown: float) -> None:
    """Ask for another try after so many seconds, and be content with that."""
    _log("start", name)
    if not self.request.retries:
        raise self.retry(countdown=countdown)
    _log("end", name)


@app.task(name="contrast.add", ignore_result=False)
def add(one: int, other: int) -> int:
    """Return the sum of two."""
    return one + other


def say_and_send(name: str, **options: Any) -> None:
    """Say that it is sent, and send it."""
    _log("sent", name)
    run.apply_async((name,), **options)
