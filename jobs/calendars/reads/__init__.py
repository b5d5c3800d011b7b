"""Reads of calendars for pages: a month, a status, the times of a window."""
