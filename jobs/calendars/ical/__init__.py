"""iCalendar files (RFC 5545) as windows or freezes. Pure: bytes in, entries or an IcalError out.

icalendar reads the parts of a line: parameters, escapes, dates, durations, Windows' names of zones.
Lines are split here, because an error names its line. Events are interpreted here, because windows
follow the clock of a zone and not offsets from UTC.
"""

from jobs.calendars.ical.reading import EVENT_LIMIT, SIZE_LIMIT, ImportedWindow, Reading, read
from jobs.core.errors import IcalError

__all__ = ["EVENT_LIMIT", "SIZE_LIMIT", "IcalError", "ImportedWindow", "Reading", "read"]
