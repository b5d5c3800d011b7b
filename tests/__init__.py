"""Tests: folders mirror the code; `flows`, `chaos` and `machines` play whole processes."""
