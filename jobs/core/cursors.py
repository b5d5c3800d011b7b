"""Cursors of lists: signed texts that say after which row the next page begins.

A cursor has the mark of its list: a cursor of another list, caller or filter is refused.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from django.core import signing

SALT: Final = "fairshift.api.cursor"


class WrongCursor(ValueError):
    """A text that is no cursor of this list."""


def mark_of(name: str, caller: Any, filters: Any = None) -> str:
    """Return the mark of a list: a digest of its name, its caller and its filters."""
    facts = repr((name, type(caller).__name__, caller.pk, filters))
    return hashlib.sha256(facts.encode(errors="backslashreplace")).hexdigest()[:16]


def write(mark: str, key: Any) -> str:
    """Return the cursor of the page after the row with this key."""
    return signing.dumps([mark, str(key)], salt=SALT)


def read(cursor: str, mark: str) -> str:
    """Return the key in a cursor of this list; raise WrongCursor for any other text."""
    try:
        found, after = signing.loads(cursor, salt=SALT)
    except (signing.BadSignature, ValueError, TypeError):
        raise WrongCursor from None
    if found != mark:
        raise WrongCursor
    return str(after)
