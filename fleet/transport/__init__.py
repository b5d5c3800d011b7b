"""The fair transport: one Celery queue that stands for the queues of many owners.

`channel` and `poller` are Kombu's, with fair queues. `leases` has what this process holds; `lua/`
has one script for each act. `epochs` handles a Redis that was emptied, `repair` wrong keys.
"""
