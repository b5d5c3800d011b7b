"""Owners."""
