"""The project's settings with Django's own pool of connections."""

from config.settings import *  # noqa: F403
from config.settings import DATABASES

# Fewer than a web process has threads.
DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 2}
DATABASES["default"]["CONN_MAX_AGE"] = 0
