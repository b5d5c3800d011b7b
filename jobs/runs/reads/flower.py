"""Addresses in Flower, if the project has it."""

from __future__ import annotations

from urllib.parse import quote

from django.conf import settings


def flower_address(*parts: str) -> str:
    """Return the address of a page of Flower by the parts of its path; empty without FLOWER_URL."""
    base = getattr(settings, "FLOWER_URL", "")
    return "/".join((base.rstrip("/"), *map(quote, parts))) if base else ""
