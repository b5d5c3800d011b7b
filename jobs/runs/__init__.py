"""Runs: one file a step of a run's journey.

`submission` takes the call, `preparation` checks it, `storage` writes the rows, `dispatch`
publishes the hints after the commit. A worker asks `admission` before it starts a run and tells
`recording` what became of it. `gate` and `unblocking` move what waits. `cancellation`,
`manual_retry` and `override` are what people do to a run.
"""
