"""Calendars: their options, what they apply to, their openings, and iCalendar files.

Each module adds its operations to `router`. `jobs/api/windows` has their windows and freezes.
"""

from jobs.api.calendars import attachments, changing, files, months, openings, reading
from jobs.api.calendars.router import router

__all__ = ["attachments", "changing", "files", "months", "openings", "reading", "router"]
