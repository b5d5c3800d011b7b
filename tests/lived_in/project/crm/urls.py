import os

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [path("admin/", admin.site.urls)]
if os.environ.get("WITH_FAIRSHIFT"):
    urlpatterns.append(path("fairshift/", include("jobs.urls")))
