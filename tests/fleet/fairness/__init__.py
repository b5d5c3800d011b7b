"""Fairness."""
