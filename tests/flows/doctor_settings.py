"""Settings of an installation that is ready for production, but for what a scene breaks."""

import os

from config.settings import *  # noqa: F403

# The embedded Redis is old and stores nothing; the site's name is not in the list of browsers.
SILENCED_SYSTEM_CHECKS = ["fairshift.W205", "fairshift.D201", "security.W021"]
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
if "ACCEPTED" in os.environ:
    CELERY_ACCEPT_CONTENT = os.environ["ACCEPTED"].split()
if "SILENCED" in os.environ:
    SILENCED_SYSTEM_CHECKS = os.environ["SILENCED"].split()
