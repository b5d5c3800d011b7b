"""Cells of CSV files that no spreadsheet takes for a formula. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

FORMULA: Final = tuple("=+-@＝＋－＠\t\r\n")
"""Beginnings of texts that spreadsheets run, also after white space."""


def harmless(value: Any) -> str:
    """Return a value as the text of a cell: containers as JSON, None as nothing.

    A text that begins like a formula gets an apostrophe before it (OWASP, CSV injection).
    """
    if value is None:
        return ""
    text = json.dumps(value) if isinstance(value, dict | list | bool) else str(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_formula = text.startswith(FORMULA) or text.lstrip().startswith(FORMULA)
    return f"'{text}" if is_formula and not is_number else text
