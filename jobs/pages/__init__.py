"""Pages outside the admin, and the iCalendar feed. Their addresses are in `jobs/urls.py`.

`docs/understand/pages.md` says how to add a page. The REST API is `jobs/api`.
"""
