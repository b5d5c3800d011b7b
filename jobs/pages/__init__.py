"""Pages outside the admin: the iCalendar feed."""
