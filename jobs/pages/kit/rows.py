"""The address of a row's page; of its page in the admin, while it has no page of ours."""

from __future__ import annotations

from typing import Any

from django.db import models

from jobs.models import Owner
from jobs.pages.kit import nav
from jobs.pages.kit.visit import Visit


def row_address(visit: Visit, kind: str, key: Any, *, slug: str = "") -> str | None:
    """Return the address of a row; None: it has no page that the visitor may open.

    `kind` is the name of its model; `slug` that of an owner, whose page has it in its address.
    """
    # The page of an owner is of this one, whichever has been chosen; there is none without a slug.
    own = nav.address(kind, slug) if kind == "owner" else visit.address(kind, key)
    return own or visit.admin_address(f"{kind}_change", key)


def address_of(row: models.Model) -> str | None:
    """Return the address of a row's page outside the admin; None if there is none."""
    key = row.slug if isinstance(row, Owner) else row.pk
    return nav.address(str(row._meta.model_name), key)
