"""What pages show of calendars: `month`, `status`, and the times and state of a window."""
