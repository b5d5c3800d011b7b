"""The admin of Fairshift, on the stock Django admin.

Each model has a `page` module, such as `runs/page.py`, with the columns and filters of its list.
"""

from importlib import import_module

for _page in (
    "jobs.admin.calendars.page",
    "jobs.admin.calendars.window_page",
    "jobs.admin.jobs.backfill_page",
    "jobs.admin.jobs.missed",
    "jobs.admin.jobs.page",
    "jobs.admin.kit.celery_pages",
    "jobs.admin.kit.index",
    "jobs.admin.owners.audit",
    "jobs.admin.owners.page",
    "jobs.admin.owners.target",
    "jobs.admin.owners.target_group",
    "jobs.admin.owners.token",
    "jobs.admin.owners.webhook",
    "jobs.admin.owners.worker",
    "jobs.admin.runs.page",
    "jobs.admin.runs.submission_page",
):
    import_module(_page)
