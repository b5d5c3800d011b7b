"""Pages outside the admin: the iCalendar feed. Their addresses are in `jobs/urls.py`.

The REST API is `jobs/api`.
"""
