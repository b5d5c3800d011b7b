"""Hints for the tests of how they are made and sent."""

from typing import Any
from uuid import uuid4

from fleet import Hint

QUEUE = "jobs"


def hint(**facts: Any) -> Hint:
    """Return a new run's hint; `facts` are its other fields."""
    named = {"task": "tests.add", "queue": QUEUE, "owner": "acme", **facts}
    return Hint(**{"run_id": str(uuid4()), **named})
