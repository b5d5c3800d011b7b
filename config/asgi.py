"""The ASGI application, for a web server."""

import os

from django.core.asgi import get_asgi_application

from config.databases import limit_waits

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_asgi_application()
limit_waits()
