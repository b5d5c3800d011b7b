"""Tasks: which may be submitted, their policies, their arguments and results as bytes.

`registry` knows the tasks, `arguments` checks a call, `encoding` makes bytes of it. `retry_policy`
decides whether a failed attempt is retried, and after how long.
"""
