"""Checks of retention: whether the archive can be written, and how its last round went."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.checks import CheckMessage, register
from django.core.checks import Warning as Caution
from django.db import DatabaseError

from jobs.core.conf import how_to_set, unknown_settings, wrong_settings
from jobs.models import HistoryRound
from jobs.system.retention.parts import archive_folder


@register("fairshift", deploy=True)
def check_history(**_arguments: Any) -> list[CheckMessage]:
    """Find an archive that this process cannot write, and rounds that could not remove rows."""
    # With wrong settings (E001) these cannot be read.
    if unknown_settings() or wrong_settings():
        return []
    return [*_folder(), *_last_round()]


def _folder() -> Iterator[CheckMessage]:
    folder = archive_folder()
    if folder is not None and not _is_writable(folder):
        yield Caution(
            f"The archive's folder {folder} does not exist, or this user may not write there: old"
            " runs stay.",
            hint="Make it on the machine of the system worker, writable for its user, or correct"
            f" {how_to_set('ARCHIVE_FOLDER')}.",
            id="fairshift.W114",
        )


def _last_round() -> Iterator[CheckMessage]:
    try:
        last = HistoryRound.objects.first()
    except DatabaseError:
        return  # check_database says so
    if last is not None and last.problem_since is not None:
        yield Caution(
            f"Old runs stay since {last.problem_since:%Y-%m-%d %H:%M} UTC: {last.problem}",
            hint="See docs/operate/history.md; the system worker tries again every ten minutes.",
            id="fairshift.W113",
        )


def _is_writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
