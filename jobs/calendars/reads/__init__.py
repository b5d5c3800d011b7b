"""Reads of calendars for pages: a month (days in `month_layout`), a status, a window's times."""
