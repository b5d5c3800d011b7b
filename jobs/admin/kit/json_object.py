"""A JSON object from a form field, with an error that says where it is wrong."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from django.utils.translation import gettext as _


def parsed(text: str) -> dict[str, Any]:
    """Return a JSON object; {} for a blank text. The ValueError says where it is wrong."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ValueError(
            _("This is not JSON: %(problem)s, in line %(line)d, column %(column)d.")
            % {"problem": error.msg, "line": error.lineno, "column": error.colno}
        ) from None
    except RecursionError:
        raise ValueError(_("This is nested too deeply.")) from None
    if not isinstance(value, dict):
        raise ValueError(  # noqa: TRY004  the field's value is wrong, not the call's argument
            _("This is JSON, but not an object of names and values: {…}.")
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        [(twice, _times)] = Counter(name for name, _value in pairs).most_common(1)
        raise ValueError(_("%s is given twice.") % twice)
    return made


def _constant(name: str) -> Any:
    raise ValueError(_("%s is not JSON.") % name)
