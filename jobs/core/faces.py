"""Packages that import their exports on first use: models need Django's apps, `jobs` does not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def face(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that exports these names.

    `homes` has the place of each name: "module" for the same name there, or "module:name".
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, there = homes[name].partition(":")
        return getattr(import_module(module), there or name)

    def names() -> list[str]:
        standard = {name for name in vars(sys.modules[package]) if name.startswith("__")}
        return sorted(standard | homes.keys())

    return find, names
