"""The app beside this on other servers and clocks: CONTRAST_OPTIONS are options of its transport.

Loaded into a worker with `--include`, into any other process by importing everything.
"""

import json
import os
import select
import time
from pathlib import Path
from typing import Any

import fleet
from fleet.router import acting_for
from tests.contrast.app import IS_FAIR, _log, app, run

app.conf.broker_transport_options |= json.loads(os.environ.get("CONTRAST_OPTIONS", "{}"))


if IS_FAIR:
    fleet.route_calls()


@app.task(name="elsewhere.once_more", bind=True, max_retries=1)
def once_more(self: Any, name: object, countdown: float) -> None:
    """Ask for another try after so many seconds, and be content with that."""
    _log("start", name)
    if not self.request.retries:
        raise self.retry(countdown=countdown)
    _log("end", name)


@app.task(name="elsewhere.until")
def until(name: object, path: str) -> None:
    """Run until there is such a file."""
    _log("start", name)
    while not Path(path).exists():
        time.sleep(0.05)
    _log("end", name)


@app.task(name="elsewhere.hold")
def hold(name: object, seconds: float) -> None:
    """Take so many seconds, also where libfaketime makes 124 of a sleep of 4."""
    _log("start", name)
    select.select([], [], [], seconds)
    _log("end", name)


def publish(count: int, *owners: str, seconds: float = 0.0) -> None:
    """Publish so many tasks, of the owners in turn."""
    for number in range(count):
        with acting_for(owners[number % len(owners)]):
            run.delay(number, seconds)


def say_and_send(name: str, **options: Any) -> None:
    """Say that it is sent, and send it."""
    _log("sent", name)
    run.apply_async((name,), **options)
