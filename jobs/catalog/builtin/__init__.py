"""Tasks that every installation has: HTTP requests and Django's management commands."""

from jobs.catalog.builtin.command import management_command
from jobs.catalog.builtin.http import http_request

__all__ = ["http_request", "management_command"]
