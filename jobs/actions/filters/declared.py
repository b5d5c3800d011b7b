"""The declaration of a list's filters.

Each field of a `Filter` is one: its type is what the API takes, `Shown` is for forms (a filter
without it is in no form, and the help is an example of a value), `By` says how it narrows rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from jobs.actions.conditions import Rows
from jobs.actions.declared import Shown
from jobs.actions.texts import Slug
from jobs.core.sql import now
from jobs.models import Owner
from jobs.models.access import Access

ID_LIMIT: Final = 2**63 - 1
"""The highest id of a row."""
NAMED: Final = 100
"""Most rows of other tables that one name may stand for, such as a job's key of many owners."""
SHARED: Final = "(shared)"
"""In place of an owner: rows that all owners share."""

Narrowing = Callable[[Rows, Any, Access], Rows]
Pairs = Sequence[tuple[str, Any]]
"""Values, each with its label."""


@dataclass(frozen=True, slots=True)
class By:
    """How a filter narrows rows: a lookup of a queryset, or a function."""

    how: str | Narrowing
    is_scanned: bool = False
    """True: no index answers it, and `how` is a column."""
    empty: str | None = None
    """The value that stands for an empty text."""

    def value_of(self, value: Any) -> Any:
        return "" if value == self.empty else value

    def narrow(self, rows: Rows, value: Any, access: Access) -> Rows:
        if isinstance(self.how, str):
            return rows.filter(**{self.how: self.value_of(value)})
        return self.how(rows, value, access)


@dataclass(frozen=True, slots=True)
class Choices:
    """The values that forms offer."""

    of: Pairs | Callable[[], Pairs]
    is_open: bool = False
    """True: other values may be typed."""

    @property
    def pairs(self) -> Pairs:
        return self.of() if callable(self.of) else self.of


class Filter(BaseModel):
    """The filters of a list; a row must match all of them."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> Iterator[tuple[By, Any]]:
        """Yield each filter that is set, with its value."""
        for name, info in type(self).model_fields.items():
            value, by = getattr(self, name), part_of(info, By)
            if by is not None and value not in (None, []):
                yield by, value

    def narrow(self, rows: Rows, *, access: Access) -> Rows:
        """Narrow rows; the name of another owner's row finds nothing."""
        for by, value in self.given():
            rows = by.narrow(rows, value, access)
        return rows

    def query(self) -> dict[str, Any]:
        """Return the filter as the query of an address."""
        return self.model_dump(mode="json", exclude_defaults=True)


def part_of(info: FieldInfo, kind: Any) -> Any:
    """Return the part of this kind of a filter's declaration, if it has one."""
    return next((one for one in info.metadata if isinstance(one, kind)), None)


def keys_of(rows: Rows) -> list[Any]:
    """Return the keys of the rows that a name stands for: with them PostgreSQL plans better."""
    return list(rows.order_by("pk").values_list("pk", flat=True)[:NAMED])


def by_owner(column: str = "owner_id") -> By:
    """Return how the slug of an owner narrows rows with its key in a column."""

    def narrowed(rows: Rows, slug: str, access: Access) -> Rows:
        if slug == SHARED:
            return rows.filter(**{f"{column}__isnull": True})
        owners = access.narrowed(Owner.objects.filter(slug=slug), path="pk")
        return rows.filter(**{f"{column}__in": keys_of(owners)})

    return By(narrowed)


YES_OR_NO: Final = Choices((("yes", gettext_lazy("yes")), ("no", gettext_lazy("no"))))
OwnedBy = Annotated[Slug | None, by_owner()]

Age = Literal["1h", "1d", "7d", "30d"]
_AGES: Final = {
    "1h": (timedelta(hours=1), gettext_lazy("last hour")),
    "1d": (timedelta(days=1), gettext_lazy("last 24 hours")),
    "7d": (timedelta(days=7), gettext_lazy("last 7 days")),
    "30d": (timedelta(days=30), gettext_lazy("last 30 days")),
}


def by_age(narrowed: Narrowing) -> By:
    """Return how an age narrows rows, of how the moment does from which on they are."""
    return By(lambda rows, age, access: narrowed(rows, now() - _AGES[age][0], access))


AGES: Final = Choices(tuple((age, label) for age, (_span, label) in _AGES.items()))
FROM: Final = Shown(_("From"))
BEFORE: Final = Shown(_("Before"))
