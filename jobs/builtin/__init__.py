"""Tasks that every installation has: HTTP requests and Django's management commands."""

from jobs.builtin.command import management_command
from jobs.builtin.http import http_request

__all__ = ["http_request", "management_command"]
