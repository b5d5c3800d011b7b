"""Progress that tasks report, in a terminal: as rows, text and JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from jobs.client.terminal import printable
from jobs.runs.reads.progress import Reporting

HEADINGS: Final = ("run", "owner", "task", "progress")


def as_dicts(found: Sequence[Reporting]) -> list[dict[str, Any]]:
    """Return the runs for JSON, with progress as the API has it."""
    return [
        {
            "run": str(one.id),
            "owner": one.owner,
            "task": one.task,
            "progress": asdict(one.progress) | {"at": one.progress.at.isoformat()},
        }
        for one in found
    ]


def rows(found: Sequence[Reporting]) -> list[list[str]]:
    """Return the cells of these runs, below HEADINGS."""
    return [[str(one.id), one.owner, one.task, printable(str(one.progress))] for one in found]
