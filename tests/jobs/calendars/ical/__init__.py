"""Ical."""
