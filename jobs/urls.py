"""Addresses of our own; a project's urls.py has `path("fairshift/", include("jobs.urls"))`."""

from django.urls import include, path

from jobs.api.site import urlpatterns as api_urlpatterns
from jobs.pages import session
from jobs.pages.audit import audit
from jobs.pages.ical_feed import calendar_feed
from jobs.pages.overview import overview
from jobs.pages.owners import limit, owner, owners, pause, resume
from jobs.pages.search import search

app_name = "jobs"
urlpatterns = [
    path("calendars/<str:secret>.ics", calendar_feed, name="calendar_feed"),
    path("api/v1/", include((api_urlpatterns(), "api"))),
    # The name of a page's address is that of its entry in jobs/pages/kit/nav.py.
    path("", overview, name="overview"),
    path("search/", search, name="search"),
    path("audit/", audit, name="audit"),
    path("owners/", owners, name="owners"),
    path("owners/<str:slug>/", owner, name="owner"),
    path("owners/<str:slug>/pause/", pause, name="pause_owner"),
    path("owners/<str:slug>/resume/", resume, name="resume_owner"),
    path("owners/<str:slug>/limits/", limit, name="limit_owner"),
    path("login/", session.Login.as_view(), name="login"),
    path("logout/", session.Logout.as_view(), name="logout"),
    path("theme/", session.theme, name="theme"),
]
