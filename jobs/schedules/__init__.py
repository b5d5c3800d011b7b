"""When is a job due? Pure: the time is passed in, and nothing here knows Django.

`due` lists the due times of a schedule. `cron` does it for a cron expression, also where a zone's
clock skips or repeats a time. `misfire` decides on due times that were missed.
"""

from jobs.core.errors import ScheduleError
from jobs.schedules.cron import cron_minutes
from jobs.schedules.due import due_times, next_times
from jobs.schedules.limits import checked
from jobs.schedules.phases import moment_of, place, place_at, slot_of
from jobs.schedules.schedule import Schedule
from jobs.schedules.words import in_words, notes

__all__ = [
    "Schedule",
    "ScheduleError",
    "checked",
    "cron_minutes",
    "due_times",
    "in_words",
    "moment_of",
    "next_times",
    "notes",
    "place",
    "place_at",
    "slot_of",
]
