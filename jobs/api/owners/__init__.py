"""Owners: their facts, limits and pauses; their members; their month; what they used."""

from jobs.api.owners import changing, members, month, reading, used  # noqa: F401 - they add operations
from jobs.api.owners.router import router

__all__ = ["router"]
