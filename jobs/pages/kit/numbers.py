"""Numbers as the reader's language writes them."""

from __future__ import annotations

from django.utils.formats import number_format


def number(value: float, *, decimals: int | None = None) -> str:
    """Return a number with thousands apart: 12,408 in English, 12.408 in German."""
    rounded = value if decimals is None else round(value, decimals)
    return number_format(rounded, decimal_pos=decimals, use_l10n=True, force_grouping=True)
