"""Metrics for Prometheus, and the health of a web process. Both are for programs.

`families.py` is the catalogue of metrics, `samples.py` what is measured. `vitals.py`, `totals.py`,
`queues.py`, `shares.py` and `problems.py` read and measure; `scrape.py` joins them, also when
PostgreSQL or Redis is away. `access.py` says who may scrape, `views.py` and `health.py` answer.
"""
