"""Runs: one file for each step of a run's journey.

`submission` takes the call, `preparation` checks it, `storage` writes the rows, `dispatch`
publishes the hints after the commit. A worker asks `admission` (the statement is `sql/admit.sql`)
before it starts a run, and reports the outcome to `recording`. `gate` and `unblocking` move waiting
runs. `cancellation`, `manual_retry`, `bulk` and `override` are the actions of an operator; `reads`
has what faces show. `changing` changes a waiting run, `looks` asks where a running one is. A chord
is opened in `jobs/catalog/celery_callbacks.py`; `result_backend` starts its body. `sealed_reports`
encrypts results and errors. Retries are decided in `jobs/catalog/retry_policy.py`.
"""
