"""Which releases of Redis and Valkey have all published security fixes.

Redis: CVE-2026-81934 (CISA advisory VA-26-239-01 of 27 August 2026), whose fixed releases contain
the fixes of earlier advisories, among them CVE-2025-49844, by which a Lua script runs code on the
server. Valkey: the security releases of 21 July 2026 (CVE-2026-56684, CVE-2026-63639), by their
release notes. A line that is not in the table gets no more fixes, or is newer than the table.
"""

from __future__ import annotations

from typing import Final

Version = tuple[int, int, int]

REDIS_FLOORS: Final[tuple[Version, ...]] = (
    (6, 2, 24),
    (7, 2, 16),
    (7, 4, 11),
    (8, 2, 9),
    (8, 4, 6),
    (8, 6, 6),
    (8, 8, 2),
    (8, 10, 1),
)
VALKEY_FLOORS: Final[tuple[Version, ...]] = (
    (7, 2, 14),
    (8, 0, 10),
    (8, 1, 9),
    (9, 0, 5),
    (9, 1, 1),
)


def oldest_patched(version: str, floors: tuple[Version, ...]) -> str | None:
    """Return the oldest patched release of the same line, or of the next one; None if patched.

    A version that is newer than the table, or not made of numbers, counts as patched.
    """
    parts = version.split(".")[:3]
    if len(parts) < 3 or not all(part.isdecimal() for part in parts):
        return None
    major, minor, patch = map(int, parts)
    floor = next((one for one in floors if one[:2] >= (major, minor)), None)
    if floor is None or (major, minor, patch) >= floor:
        return None
    return ".".join(map(str, floor))
