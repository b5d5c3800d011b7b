"""Settings of a Celery app that win over those of its project."""

from __future__ import annotations

from typing import Any


def overrule(conf: Any, **settings: Any) -> None:
    """Set an app's settings, also those that the project sets in any form of their names."""
    conf.update(settings)
    for name, value in settings.items():
        # Celery before 5.7 looks everywhere for the name with the prefix, then for the other one.
        if conf[name] is not value:
            prefixed = conf.prefix + name
            conf[prefixed.upper() if conf.prefix.isupper() else prefixed] = value
