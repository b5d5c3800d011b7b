"""The WSGI application, for a web server."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.databases import limit_waits

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()
limit_waits()
# Imports all views now: the first request of the process would wait for them.
_ = get_resolver().url_patterns
