"""What pages show of calendars: a month, a status, the times of a window."""
