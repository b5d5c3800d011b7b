"""iCalendar files (RFC 5545) as windows or freezes. Pure: bytes in, entries or an IcalError out.

icalendar reads the parts of a line: parameters, escapes, dates, durations, Windows' zone names. Our
code splits lines, since an error names its line, and interprets events, since windows go by the
clock of a zone and not by offsets from UTC.
"""

from jobs.calendars.ical.reading import EVENT_LIMIT, SIZE_LIMIT, Found, Reading, read
from jobs.core.errors import IcalError

__all__ = ["EVENT_LIMIT", "SIZE_LIMIT", "Found", "IcalError", "Reading", "read"]
