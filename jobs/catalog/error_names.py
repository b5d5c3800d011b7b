"""Checks that the names in `retry_on` and `give_up_on` are those of exception classes."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from jobs.core.errors import OptionError

OPTIONS: Final = ("retry_on", "give_up_on")
NEAR: Final = 0.7
"""Least likeness, 0 to 1, of a name that is suggested: hundreds of classes are loaded."""
_known: Final[set[str]] = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


def refuse_unknown_errors(policy: Mapping[str, Any]) -> None:
    """Raise OptionError for a name without module that no loaded exception class has.

    A name with a module is not checked: the task may import that module later.
    """
    for option in OPTIONS:
        refuse_unknown_names(option, policy.get(option) or ())


def refuse_unknown_names(option: str, names: Iterable[str]) -> None:
    for name in names:
        if "." in name or name in _known:
            continue
        _known.update(_loaded())
        if name not in _known:
            public = [one for one in sorted(_known) if not one.startswith("_")]
            near = get_close_matches(name, public, n=1, cutoff=NEAR)
            hint = f"did you mean {near[0]}? Else name" if near else "name"
            raise OptionError(
                option,
                f"holds {name!r:.80}, and no exception class of this name is loaded here; {hint}"
                " it with its module, as package.errors.Class",
            )


def _loaded() -> set[str]:
    """Return the names of all exception classes that this process has loaded."""
    found: set[type] = set()
    left: list[type] = [BaseException]
    while left:
        fresh: set[type] = set(type.__subclasses__(left.pop())) - found
        found |= fresh
        left.extend(fresh)
    return {one.__name__ for one in found}
