"""The admin of Fairshift: one module for each model, on Django's stock admin."""

from importlib import import_module

for _page in (
    "jobs.admin.calendars.page",
    "jobs.admin.calendars.window_page",
    "jobs.admin.jobs.backfill_page",
    "jobs.admin.jobs.missed",
    "jobs.admin.jobs.page",
    "jobs.admin.jobs.scheduler",
    "jobs.admin.kit.celery_pages",
    "jobs.admin.owners.audit",
    "jobs.admin.owners.page",
    "jobs.admin.owners.target",
    "jobs.admin.owners.target_group",
    "jobs.admin.owners.worker",
    "jobs.admin.runs.page",
    "jobs.admin.runs.submission_page",
):
    import_module(_page)
