"""Benchmarks: each figure beside a baseline of the same run. See docs/understand/benchmarks.md."""
