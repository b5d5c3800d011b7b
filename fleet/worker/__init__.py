"""The worker's side of a run's journey: boot steps around Celery's worker.

`gate` holds a hint until its run is admitted, `child` runs the task, `outcomes` reports its end.
`leasing` renews the leases of messages in Redis; `heartbeat` renews the worker's own in PostgreSQL.
`io_thread` is the only way from the event loop to PostgreSQL. If PostgreSQL is lost, `away` gives
waiting hints back; if the broker is lost, `consumer` connects again.
"""
