"""Stock Celery as the baseline: its own transport, in the best configuration that it has.

Prefork, a tuned prefetch multiplier, late acknowledgement (what Fairshift promises too), and
nothing that a throughput figure would pay for without need: results, events, rate limits.
Gossip, mingle and heartbeat are off on the command line (`sides.py`).
"""

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

from tests.benchmarks.servers import stock_url

TRANSPORT_ALIASES["stock"] = "kombu.transport.redis:Transport"

QUEUE = "stock"
PREFETCH = 128
"""The best of 16, 64, 128 and 256 by the median of 3 rounds of `drain`, beside 64."""

app = Celery("stock", set_as_current=False)
app.conf.update(
    broker_url=stock_url(os.environ["REDIS_URL"]),
    broker_connection_retry_on_startup=True,
    imports=["tests.benchmarks.tasks"],
    task_acks_late=True,
    task_default_queue=QUEUE,
    task_ignore_result=True,
    worker_disable_rate_limits=True,
    worker_prefetch_multiplier=PREFETCH,
    worker_send_task_events=False,
)
