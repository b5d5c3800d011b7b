"""Tests of Celery's suite that may differ on a fair queue: each with its reason.

docs/use/drop-in.md has a row for each.
"""

from typing import Final

LATE: Final = "a task is acknowledged when it ends: `acknowledged` is false while it runs"
ETA: Final = "an ETA waits in Redis, not in the worker: the worker's `scheduled` list is empty"

INSPECT: Final = "t/integration/test_inspect.py::test_Inspect"
DIFFERENCES: Final[dict[str, str]] = {
    f"{INSPECT}::test_active": LATE,
    f"{INSPECT}::test_query_task": LATE,
    f"{INSPECT}::test_scheduled": ETA,
}
