"""Addresses of our own; a project's urls.py has `path("fairshift/", include("jobs.urls"))`."""

from django.urls import include, path

from jobs.api.site import urlpatterns as api_urlpatterns
from jobs.pages import session
from jobs.pages.failures.page import failures
from jobs.pages.failures.retry import retry_failures
from jobs.pages.ical_feed import calendar_feed
from jobs.pages.overview.page import overview
from jobs.pages.workers import worker, workers

app_name = "jobs"
urlpatterns = [
    path("calendars/<str:secret>.ics", calendar_feed, name="calendar_feed"),
    path("api/v1/", include((api_urlpatterns(), "api"))),
    # The name of a page's address is that of its entry in jobs/pages/kit/nav.py.
    path("", overview, name="overview"),
    path("failures/", failures, name="failures"),
    path("failures/retry/", retry_failures, name="retry_failures"),
    path("workers/", workers, name="workers"),
    path("workers/<uuid:worker_id>/", worker, name="worker"),
    path("login/", session.Login.as_view(), name="login"),
    path("logout/", session.Logout.as_view(), name="logout"),
    path("theme/", session.theme, name="theme"),
]
