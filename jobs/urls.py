"""Addresses of our own; a project's urls.py has `path("fairshift/", include("jobs.urls"))`."""

from django.urls import include, path

from jobs.api.site import urlpatterns as api_urlpatterns
from jobs.pages.ical_feed import calendar_feed

app_name = "jobs"
urlpatterns = [
    path("calendars/<str:secret>.ics", calendar_feed, name="calendar_feed"),
    path("api/v1/", include((api_urlpatterns(), "api"))),
]
