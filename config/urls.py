"""Addresses of the web process."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from jobs.ical_view import calendar_feed

admin.site.site_header = "Fairshift"
admin.site.site_title = "Fairshift"
admin.site.index_title = "Overview"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("calendars/<str:secret>.ics", calendar_feed, name="calendar_feed"),
    path("", RedirectView.as_view(pattern_name="admin:index")),
]
