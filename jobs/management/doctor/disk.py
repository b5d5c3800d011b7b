"""The room on the disks of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

from jobs.core.conf import setting

GIB: Final = 1 << 30


class Room(NamedTuple):
    """Bytes of a disk."""

    free: int
    total: int

    @property
    def is_short(self) -> bool:
        """Whether less than a tenth, and less than 10 GiB, is free."""
        return self.free < self.total / 10 and self.free < 10 * GIB

    @property
    def is_out(self) -> bool:
        """Whether less than a hundredth, and less than 1 GiB, is free."""
        return self.free < self.total / 100 and self.free < GIB


def space(what: str, folder: Path) -> Iterator[CheckMessage]:
    """Report a disk that is nearly full; nothing if the folder cannot be reached."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return
    room = Room(usage.free, usage.total)
    if not room.is_short:
        return
    kind = Error if room.is_out else Caution
    yield kind(
        f"The disk of {what} has {_size(room.free)} of {_size(room.total)} left ({folder}).",
        hint="Make room, or give it a larger disk: a PostgreSQL without room stops.",
        id="fairshift.D401",
    )


def folders() -> Iterator[CheckMessage]:
    """Report the disks of the archive, and of the project's logs and embedded servers."""
    if archive := setting("ARCHIVE_FOLDER"):
        yield from space("the archive", Path(archive))
    state = getattr(settings, "STATE_DIR", None)
    if state is not None:
        yield from space("logs and state", Path(state))


def _size(number: int) -> str:
    return f"{number / GIB:,.1f} GiB" if number >= GIB else f"{number / (1 << 20):,.0f} MiB"
