"""Counts with their nouns, for messages."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """Return a count with its noun, such as "1 hint" and "1,200 hints"; the plural ends in s."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
