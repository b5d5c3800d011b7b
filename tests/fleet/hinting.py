"""Hints and calls for the tests of how they are sent, and forks that send them too."""

import os
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import redis
from celery import current_app

from fleet import Hint

QUEUE = "jobs"


def hint(**facts: Any) -> Hint:
    """Return a new run's hint; `facts` are its other fields."""
    named = {"task": "tests.add", "queue": QUEUE, "owner": "acme", **facts}
    return Hint(**{"run_id": str(uuid4()), **named})


def call(queue: str = QUEUE, task: str = "tests.add", **options: Any) -> str:
    """Call a task, and return the call's id."""
    return str(current_app.send_task(task, (1, 2), queue=queue, **options).id)


def pushed_by_stock(client: redis.Redis, **options: Any) -> str:
    """Push a call to the fair queue's list as a stock client does; return the call's id."""
    call_id = call("stock", **options)
    raw = client.lpop("stock")
    assert isinstance(raw, bytes)
    client.lpush(QUEUE, raw)
    return call_id


def forked(act: Callable[[], Any]) -> int:
    """Do something in a child, which ends with 0 if it works; return its process id."""
    child = os.fork()
    if not child:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def has_worked(child: int) -> bool:
    """Wait for the end of a forked child; say whether its act has worked."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
