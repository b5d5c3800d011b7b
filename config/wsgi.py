"""The WSGI application, for a web server."""

import os

from django.core.wsgi import get_wsgi_application

from config.databases import limit_waits

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()
limit_waits()
