"""Kombu's options for a Redis behind Sentinel, from the environment."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config.env import Environment

MASTER, PASSWORD = "REDIS_MASTER_NAME", "REDIS_SENTINEL_PASSWORD"


def read_sentinel_options(env: Environment, url: str) -> dict[str, Any]:
    """Return the broker transport options that a `sentinel://` URL needs; none for another URL.

    The URL has the password of Redis itself; Sentinels may have one of their own.
    """
    if not url.startswith("sentinel://"):
        for name in (MASTER, PASSWORD):
            if env.has(name):
                raise ImproperlyConfigured(f"{name} needs a sentinel:// URL in REDIS_URL.")
        return {}
    if not env.has(MASTER):
        raise ImproperlyConfigured(
            f"{MASTER} is required with a sentinel:// URL in REDIS_URL:"
            " the name of the master in the Sentinels' configuration, such as mymaster."
        )
    options: dict[str, Any] = {"master_name": env.text(MASTER)}
    if env.has(PASSWORD):
        options["sentinel_kwargs"] = {"password": env.text(PASSWORD)}
    return options
