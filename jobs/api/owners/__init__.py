"""Owners: their facts, limits and pauses; their members; what they used."""

from jobs.api.owners import changing, members, reading, used  # noqa: F401 - they add operations
from jobs.api.owners.router import router

__all__ = ["router"]
