"""Settings of an installation that is ready for production, but for what a scene breaks."""

import os
import socket
from typing import Any

from django.core.checks import register

from config.settings import *  # noqa: F403

# The embedded Redis is old and stores nothing, scenes have a short lease, and the site's name is
# not in the list of browsers.
SILENCED_SYSTEM_CHECKS = ["fairshift.W205", "fairshift.D201", "fairshift.E007", "security.W021"]
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
if "ACCEPTED" in os.environ:
    CELERY_ACCEPT_CONTENT = os.environ["ACCEPTED"].split()
if "REPORTED" in os.environ:
    SILENCED_SYSTEM_CHECKS.remove(os.environ["REPORTED"])


def wait(**_options: Any) -> list[Any]:
    """Check the project as some do: ask a server, which does not answer."""
    address = "127.0.0.1", int(os.environ["WAITS_FOR_PORT"])
    with socket.create_connection(address) as connected:
        connected.recv(1)
    return []


if "WAITS_FOR_PORT" in os.environ:
    register(wait)
