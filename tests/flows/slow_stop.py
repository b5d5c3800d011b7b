"""The application, with a consumer that takes its time to stop: `--app tests.flows.slow_stop`."""

import logging
import time
from typing import Any

from celery import bootsteps

from config.celery import app

SECONDS = 2.0

logger = logging.getLogger(__name__)


class SlowStop(bootsteps.StartStopStep):
    """The first of the consumer's steps to be stopped, and slow at it."""

    requires = ("celery.worker.consumer:Tasks",)

    def start(self, parent: Any) -> None: ...

    def stop(self, parent: Any) -> None:
        logger.warning("the consumer stops slowly")
        time.sleep(SECONDS)


app.steps["consumer"].add(SlowStop)
