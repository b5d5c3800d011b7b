"""Owners: their share, their work, their limits and members."""

from jobs.pages.owners.listing import owners
from jobs.pages.owners.one import owner

__all__ = ["owner", "owners"]
