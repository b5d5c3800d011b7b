"""The versions of Celery, billiard, Kombu and redis-py that Fairshift was tested with.

Fairshift uses private names of all four (`fleet/patches.py`), which may change in any version.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any, Final, NamedTuple

from packaging.version import Version

from fleet.patches import PATCHES

TESTED: Final = {
    "celery": ("5.5.3", "5.6.3", "5.7.0"),
    "billiard": ("4.3.2",),
    "kombu": ("5.7.0",),
    "redis": ("6.4.0", "7.4.1", "8.1.0"),
}
"""By package, one version a line; `make compat` runs them. All other releases of these lines, from
the oldest version on, are trusted if they have each name in `fleet/patches.py`."""
PARTS_OF_A_LINE: Final = {"redis": 1}
"""How many numbers of a version name its line; 2 unless stated."""
PACKAGES: Final = {patch.of.partition(".")[0] for patch in PATCHES}
ALLOW_UNTESTED: Final = "allow_untested_versions"
"""The transport option with which a worker boots on versions of other lines."""


class Untested(NamedTuple):
    """What is said of installed versions that were not tested."""

    sentence: str
    boots: bool
    """Whether workers boot all the same: all of them are of tested lines."""


def refuse_missing_names() -> None:
    """Raise ImportError if installed versions that were not tested lack names that we use."""
    untested = _untested()
    missing = missing_names() if untested else []
    if missing:
        raise ImportError(
            f"Fairshift does not run with {_listed(untested)}: {'; '.join(missing)}."
            " Install tested versions (docs/operate/pools.md)."
        )


def untested_versions() -> Untested | None:
    """Return what is said of installed versions that were not tested; None if all of them were."""
    untested = _untested()
    if not untested:
        return None
    sentence = f"Fairshift was not tested with {_listed(untested)}"
    if all(_is_of_tested_line(name, found) for name, found in untested.items()):
        return Untested(f"{sentence}. They have each name that it uses, so workers boot.", True)
    return Untested(
        f'{sentence}: install tested versions, or set "{ALLOW_UNTESTED}": True in'
        " broker_transport_options (docs/operate/pools.md).",
        False,
    )


def missing_names() -> list[str]:
    """Return which names in `fleet/patches.py` the installed versions lack, in words."""
    missing = []
    for patch in PATCHES:
        if patch.of.partition(".")[0] not in TESTED:
            continue
        try:
            thing = resolve_name(patch.of)
        except (AttributeError, ImportError):
            missing.append(f"there is no {patch.of}")
            continue
        names = f"{patch.replaces} {patch.overrides} {patch.uses}".split()
        if lacked := [name for name in names if not has_name(thing, name)]:
            missing.append(f"{patch.of} has no {', '.join(lacked)}")
    return missing


@cache
def has_name(thing: Any, name: str) -> bool:
    """Say whether a module, or a class with its bases, has a name; also on instances alone."""
    bases = thing.__mro__ if isinstance(thing, type) else ()
    return hasattr(thing, name) or any(re.search(rf"\b{name}\b", _source(base)) for base in bases)


@cache
def _source(thing: type) -> str:
    try:
        is_theirs = thing.__module__.partition(".")[0] in PACKAGES
        return inspect.getsource(thing) if is_theirs else ""
    except OSError:
        return ""  # a class that a function of theirs has made


def _untested() -> dict[str, str]:
    installed = {name: version(name) for name in TESTED}
    return {name: found for name, found in installed.items() if found not in TESTED[name]}


def _is_of_tested_line(name: str, found: str) -> bool:
    lines = {_line(name, tested) for tested in TESTED[name]}
    oldest = min(map(Version, TESTED[name]))
    return _line(name, found) in lines and Version(found) >= oldest


def _line(name: str, found: str) -> tuple[int, ...]:
    return Version(found).release[: PARTS_OF_A_LINE.get(name, 2)]


def _listed(untested: dict[str, str]) -> str:
    return " and ".join(
        f"{name} {found} (tested: {', '.join(TESTED[name])})" for name, found in untested.items()
    )
