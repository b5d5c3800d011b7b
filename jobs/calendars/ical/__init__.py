"""iCalendar files (RFC 5545) as windows or freezes. Pure: bytes in, entries or an IcalError out.

The words of a line (parameters, escapes, dates, durations, Windows' names of zones) are read by
icalendar. Lines are ours, for an error names its line; and so is what an event means, because
windows go by the clock of a zone and not by offsets from UTC.
"""

from jobs.calendars.ical.reading import EVENT_LIMIT, SIZE_LIMIT, Found, Reading, read
from jobs.core.errors import IcalError

__all__ = ["EVENT_LIMIT", "SIZE_LIMIT", "Found", "IcalError", "Reading", "read"]
