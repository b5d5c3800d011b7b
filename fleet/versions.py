"""The versions of Celery, billiard and Kombu that Fairshift was tested with.

Fairshift overrides internals of all three (`fleet/patches.py`), which may change in any version.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

TESTED: Final = {"celery": ("5.7.0",), "billiard": ("4.3.2",), "kombu": ("5.7.0",)}
ALLOW_UNTESTED: Final = "allow_untested_versions"
"""The transport option with which a worker boots on other versions."""


def untested_versions() -> str:
    """Return a sentence about installed versions that were not tested; empty if there are none."""
    installed = {name: version(name) for name in TESTED}
    untested = [f"{name} {found}" for name, found in installed.items() if found not in TESTED[name]]
    if not untested:
        return ""
    tested = ", ".join(f"{name} {' or '.join(versions)}" for name, versions in TESTED.items())
    return (
        f"Fairshift was not tested with {' and '.join(untested)}, but with {tested}: install tested"
        f' versions, or set "{ALLOW_UNTESTED}": True in broker_transport_options'
        " (docs/operate/pools.md)."
    )
