"""Addresses of the web process."""

from django.contrib import admin
from django.urls import include, path

admin.site.site_header = "Fairshift"
admin.site.site_title = "Fairshift"
admin.site.index_title = "Administration"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("jobs.urls")),
]
