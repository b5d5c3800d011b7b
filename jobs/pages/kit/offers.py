"""Tasks on offer, as choices of a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import OfferedTask

HINTS: Final = 10
"""Tasks whose arguments the help text lists while no task is chosen."""
NO_CHOICE: Final = ("", "---------")


def choice_of(item: OfferedTask) -> tuple[str, str]:
    """Return a task as a choice of a form field."""
    return item.name, f"{item.offer.title} ({item.name})"


def hint_of(offers: Mapping[str, OfferedTask], name: str | None) -> str:
    """Return the arguments of the chosen task; while none is chosen, of the first tasks."""
    chosen = offers.get(name or "")
    return " ".join(map(_takes, [chosen] if chosen else list(offers.values())[:HINTS]))


def _takes(item: OfferedTask) -> str:
    """Return a sentence with the arguments of a task; a star marks the required ones."""
    schema = ArgumentSchema.of(item.task)
    fields = schema.model.model_fields
    names = [
        f"{name}*" if fields[field].is_required() else name for field, name in schema.fields.items()
    ]
    return _("%(task)s takes %(names)s.") % {
        "task": item.offer.title,
        "names": ", ".join(names) or _("nothing"),
    }
