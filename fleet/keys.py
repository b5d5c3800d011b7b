"""Every Redis key of Fairshift is spelt here."""

from __future__ import annotations


def epoch_key() -> str:
    """A string: which filling of Redis this is. Missing after a flush."""
    return "fairshift:epoch"
