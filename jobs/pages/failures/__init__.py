"""The failures: failed runs by error and task."""
