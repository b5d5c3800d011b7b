"""Tasks that every installation has: HTTP requests and Django's management commands.

`addresses` refuses hosts that an HTTP request may not reach (SSRF).
"""

from jobs.catalog.builtin.command import management_command
from jobs.catalog.builtin.http import http_request

__all__ = ["http_request", "management_command"]
