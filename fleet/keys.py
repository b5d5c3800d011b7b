"""Every Redis key of Fairshift is spelt here."""

from __future__ import annotations


def installation_key() -> str:
    """A string: the installation that this Redis database belongs to."""
    return "fairshift:installation"


def epoch_key() -> str:
    """A string: which filling of Redis this is. Missing after a flush."""
    return "fairshift:epoch"
