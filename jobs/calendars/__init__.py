"""Calendars: windows, approvals, openings, and whether a run may start now."""
