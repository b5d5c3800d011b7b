"""Processes that are started and stopped together: for the demo, `make up` and tests."""
