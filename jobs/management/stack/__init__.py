"""Processes that start and stop together: for `fleet run`, `make up`, the demo and tests."""
