"""Addresses of our own; a project's urls.py has `path("fairshift/", include("jobs.urls"))`."""

from django.urls import include, path

from jobs.actions.registry import NOUNS
from jobs.api.site import urlpatterns as api_urlpatterns
from jobs.pages import session
from jobs.pages.audit import audit
from jobs.pages.calendars.day import calendar_day
from jobs.pages.calendars.fit import calendar_fit
from jobs.pages.calendars.listing import calendars
from jobs.pages.calendars.month import calendar, month_of
from jobs.pages.calendars.window import window
from jobs.pages.failures.page import failures
from jobs.pages.ical_feed import calendar_feed
from jobs.pages.jobs.job import job
from jobs.pages.jobs.listing import jobs
from jobs.pages.kit.actions import action_view
from jobs.pages.kit.creating import create_view
from jobs.pages.metrics.views import live, metrics, ready
from jobs.pages.overview.page import overview
from jobs.pages.owners import owner, owners
from jobs.pages.plan import plan
from jobs.pages.runs.bulk import run_actions
from jobs.pages.runs.listing import runs
from jobs.pages.runs.log import run_log
from jobs.pages.runs.one import run
from jobs.pages.runs.saved import delete_view, rename_view, save_view, saved_views
from jobs.pages.search import search
from jobs.pages.submissions.listing import submissions
from jobs.pages.submissions.one import submission
from jobs.pages.submissions.submit import submit
from jobs.pages.webhooks import webhook, webhooks
from jobs.pages.workers import worker, workers

app_name = "jobs"


urlpatterns = [
    path("calendars/<str:secret>.ics", calendar_feed, name="calendar_feed"),
    path("api/v1/", include((api_urlpatterns(), "api"))),
    # The name of a page's address is that of its entry in jobs/pages/kit/nav.py.
    path("", overview, name="overview"),
    path("runs/", runs, name="runs"),
    path("runs/actions/<slug:name>/", run_actions, name="run_actions"),
    path("runs/views/", saved_views, name="saved_views"),
    path("runs/views/save/", save_view, name="save_view"),
    path("runs/views/<int:key>/rename/", rename_view, name="rename_view"),
    path("runs/views/<int:key>/delete/", delete_view, name="delete_view"),
    path("runs/<uuid:run_id>/", run, name="run"),
    path("runs/<uuid:run_id>/log/", run_log, name="run_log"),
    path("submissions/", submissions, name="submissions"),
    path("submissions/submit/", submit, name="submit"),
    path("submissions/<int:key>/", submission, name="submission"),
    path("jobs/", jobs, name="jobs"),
    path("jobs/<int:key>/", job, name="job"),
    path("calendars/", calendars, name="calendars"),
    path("calendars/<int:key>/", calendar, name="calendar"),
    path("calendars/<int:key>/day/<str:day>/", calendar_day, name="calendar_day"),
    path("calendars/<int:key>/fit/", calendar_fit, name="calendar_fit"),
    path("months/<slug:kind>/<int:key>/", month_of, name="month_of"),
    path("windows/<int:key>/", window, name="window"),
    path("failures/", failures, name="failures"),
    path("workers/", workers, name="workers"),
    path("workers/<uuid:worker_id>/", worker, name="worker"),
    path("webhooks/", webhooks, name="webhooks"),
    path("webhooks/<int:key>/", webhook, name="webhook"),
    path("search/", search, name="search"),
    path("audit/", audit, name="audit"),
    path("owners/", owners, name="owners"),
    path("owners/<str:slug>/", owner, name="owner"),
    *(
        path(f"create/{noun.path}/", create_view(noun), name=f"create_{noun.name}")
        for noun in NOUNS
        if noun.creation is not None
    ),
    *(
        path(
            f"{noun.path}/<{noun.key_kind}:key>/<slug:name>/",
            action_view(noun),
            name=f"{noun.name}_action",
        )
        for noun in NOUNS
    ),
    path("plan/", plan, name="plan"),
    path("login/", session.Login.as_view(), name="login"),
    path("logout/", session.Logout.as_view(), name="logout"),
    path("theme/", session.theme, name="theme"),
    # For programs.
    path("metrics", metrics, name="metrics"),
    path("health/live", live, name="live"),
    path("health/ready", ready, name="ready"),
]
