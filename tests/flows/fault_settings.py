"""Settings of the installation of the faults: a stock queue of its own, and an early report."""

from datetime import timedelta

from kombu import Exchange, Queue

from jobs.system import pinning
from tests.flows.doctor_settings import *  # noqa: F403

CELERY_TASK_QUEUES = (Queue("reports", Exchange("reports"), routing_key="reports"),)
# A transaction is reported after 15 minutes.
pinning.OLD = timedelta(seconds=15)  # type: ignore[misc]
