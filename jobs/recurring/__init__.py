"""Recurring."""
