"""Runs: one file a step of a run's journey.

`submission` takes the call, `preparation` checks it, `storage` writes the rows, `dispatch`
publishes the hints after the commit. A worker asks `admission` before it starts a run and reports
its outcome to `recording`. `gate` and `unblocking` queue waiting runs. `cancellation`,
`manual_retry` and `override` are for operators.
"""
