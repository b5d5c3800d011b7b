"""Pages outside the admin: the iCalendar feed. Their addresses are in `jobs/urls.py`.

There is no REST API yet. CONTRIBUTING.md says where a resource belongs.
"""
