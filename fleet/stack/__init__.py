"""Processes that start and stop together: for the demo, `make up` and tests."""
