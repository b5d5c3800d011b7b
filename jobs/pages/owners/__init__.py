"""Owners: their share, their work, their limits and members; paused, resumed and limited."""

from jobs.pages.owners.acts import limit, pause, resume
from jobs.pages.owners.listing import owners
from jobs.pages.owners.one import owner

__all__ = ["limit", "owner", "owners", "pause", "resume"]
