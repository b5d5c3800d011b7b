"""The failures: failed runs by error and task, and the retry of a group."""
