"""Tests: folders mirror the code; `flows`, `chaos` and `machines` play whole processes."""

STATES_IN = "TEST_STATES_IN"
"""The variable with the folder for state folders of servers; by default that of temporary files."""
