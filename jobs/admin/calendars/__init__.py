"""Calendars and windows: form, month, status, approval, import and feed."""
