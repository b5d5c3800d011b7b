"""Tests of Celery's suite that may differ on a fair queue: each with its reason.

docs/drop-in.md has a row for each.
"""

from __future__ import annotations

from typing import Final

DIFFERENCES: Final[dict[str, str]] = {}
