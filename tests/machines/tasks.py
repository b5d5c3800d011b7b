"""The task that runs on every machine, also on those whose clock is wrong."""

import select
from typing import Any

from celery import shared_task

from tests.tasks import logged


@shared_task(name="machines.work")
def work(seconds: float) -> dict[str, Any]:
    """Take `seconds`; return the token by which the judge knows the attempt.

    Not by `time.sleep`: libfaketime makes it last for the clock's offset.
    """
    with logged() as facts:
        select.select([], [], [], seconds)
        return {"token": facts["token"], "attempt": facts["attempt"]}
