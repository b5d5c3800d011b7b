"""The router to which the modules of this package add their operations."""

from ninja import Router

router = Router(tags=["jobs"])
