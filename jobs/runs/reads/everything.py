"""One search for everything: ids, numbers, keys and names, whole or by their beginning.

Each kind of row is found by an index, and in a bounded time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from jobs.calendars.visibility import visible_rows
from jobs.catalog.registry import offered
from jobs.core import barrier
from jobs.core.counting import within
from jobs.core.inputs import KEY_LIMIT
from jobs.models import Calendar, Job, Owner, Run, Submission, Target
from jobs.models.access import Access
from jobs.runs.reads.choices import word_of
from jobs.runs.reads.search import first_with

MOST: Final = 10
"""Most rows of a kind that are returned."""
MILLISECONDS: Final = 200
"""Most time of each kind."""
_ID_LIMIT: Final = 2**63
_ID: Final = re.compile(r"[0-9a-f]{6,32}")
"""The beginning of a run's id, without its dashes. Shorter ones are of too many runs."""


class Kind(StrEnum):
    """What can be found. The value is the model's name; a task has no model."""

    OWNER = "owner"
    JOB = "job"
    RUN = "run"
    SUBMISSION = "submission"
    TARGET = "target"
    CALENDAR = "calendar"
    TASK = "task"


PERMISSIONS: Final[dict[Kind, str]] = {
    **{kind: f"jobs.view_{kind}" for kind in Kind if kind is not Kind.TASK},
    Kind.TASK: "jobs.view_run",
}
"""The permission that finds rows of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One row that was found."""

    kind: Kind
    key: Any
    """The primary key; of a task its name."""
    text: str
    owner: str = ""
    """The slug of its owner; empty: it has none."""
    note: str = ""
    is_exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What was found of one kind, the exact ones first."""

    kind: Kind
    hits: Sequence[Hit]
    has_more: bool = False
    is_late: bool = False
    """Whether the search took too long, so that `hits` is empty."""


def search_everything(term: str, *, access: Access, owner: Owner | None = None) -> list[Group]:
    """Return what a caller sees and may view, of one owner if it is given; groups are not empty.

    A term that no text can be finds nothing.
    """
    term = term.strip()
    if not term or len(term) > KEY_LIMIT or not term.isprintable():
        return []
    asked = _Search(term, access, owner)
    groups = (asked.group(kind) for kind in Kind if access.permits(PERMISSIONS[kind]))
    return [group for group in groups if group.hits or group.is_late]


@dataclass(frozen=True, slots=True)
class _Search:
    term: str
    access: Access
    owner: Owner | None

    def group(self, kind: Kind) -> Group:
        finder: Callable[[], Group] = getattr(self, f"_{kind}s")
        return finder()

    def _owners(self) -> Group:
        rows = self._narrowed(Owner.objects.all(), path="pk")
        return self._named(Kind.OWNER, rows, "slug", note=lambda row: row.name)

    def _jobs(self) -> Group:
        rows = self._narrowed(Job.objects.select_related("owner").defer("payload"))

        def ask() -> list[Any]:
            keys = first_with(rows, self.term, column="key", most=MOST + 1)
            names = first_with(rows, self.term, column="name", is_any_case=True, most=MOST + 1)
            return list(dict.fromkeys([*keys, *names]))

        return self._found(Kind.JOB, rows, ask, text=lambda row: row.key, note=lambda row: row.name)

    def _targets(self) -> Group:
        rows = self._narrowed(Target.objects.select_related("owner"))
        return self._named(Kind.TARGET, rows, "name")

    def _calendars(self) -> Group:
        rows = visible_rows(Calendar.objects.select_related("owner"), self.access)
        if self.owner is not None:
            rows = rows.filter(owner=self.owner)
        return self._named(Kind.CALENDAR, rows, "name")

    def _runs(self) -> Group:
        digits = self.term.replace("-", "").lower()
        if not _ID.fullmatch(digits):
            return Group(kind=Kind.RUN, hits=())
        ends = (UUID(digits.ljust(32, filler)) for filler in "0f")
        columns = ("id", "owner__slug", "state", "task")
        rows = self._narrowed(Run.objects.select_related("owner").only(*columns))
        found = rows.filter(id__range=tuple(ends)).order_by("id").values_list("pk", flat=True)
        return self._found(
            Kind.RUN,
            rows,
            lambda: list(found[: MOST + 1]),
            text=lambda row: str(row.id),
            note=lambda row: f"{row.task} · {word_of(row.state)}",
            is_exact=lambda _row: len(digits) == 32,
        )

    def _submissions(self) -> Group:
        if not (self.term.isascii() and self.term.isdigit() and int(self.term) < _ID_LIMIT):
            return Group(kind=Kind.SUBMISSION, hits=())
        rows = self._narrowed(Submission.objects.select_related("owner"))
        found = rows.filter(pk=int(self.term)).values_list("pk", flat=True)
        return self._found(
            Kind.SUBMISSION, rows, lambda: list(found), text=lambda row: str(row.pk), note=str
        )

    def _tasks(self) -> Group:
        small = self.term.lower()
        found = [
            Hit(
                kind=Kind.TASK,
                key=task.name,
                text=task.name,
                note=str(task.offer.title),
                is_exact=task.name == self.term,
            )
            for task in offered()
            if task.name.startswith(self.term) or str(task.offer.title).lower().startswith(small)
        ]
        return _group(Kind.TASK, found)

    def _narrowed(self, rows: QuerySet[Any], *, path: str = "owner") -> QuerySet[Any]:
        seen = self.access.narrowed(rows, path=path)
        return seen if self.owner is None else seen.filter(**{path: self.owner.pk})

    def _named(
        self,
        kind: Kind,
        rows: QuerySet[Any],
        column: str,
        *,
        note: Callable[[Any], str] = lambda _row: "",
    ) -> Group:
        return self._found(
            kind,
            rows,
            lambda: first_with(rows, self.term, column=column, most=MOST + 1),
            text=lambda row: getattr(row, column),
            note=note,
        )

    def _found(
        self,
        kind: Kind,
        rows: QuerySet[Any],
        ask: Callable[[], list[Any]],
        *,
        text: Callable[[Any], str],
        note: Callable[[Any], str],
        is_exact: Callable[[Any], bool] | None = None,
    ) -> Group:
        # PostgreSQL would not use the indexes of beginnings behind the barrier. The keys are of
        # narrowed rows, and the rows are read behind it.
        with barrier.lifted():
            keys = within(MILLISECONDS, ask)
        if keys is None:
            return Group(kind=kind, hits=(), is_late=True)
        by_key = rows.in_bulk(keys)
        return _group(
            kind,
            (
                Hit(
                    kind=kind,
                    key=row.pk,
                    text=text(row),
                    owner=_slug_of(row),
                    note=note(row),
                    is_exact=text(row) == self.term if is_exact is None else is_exact(row),
                )
                for row in (by_key[key] for key in keys if key in by_key)
            ),
        )


def _slug_of(row: Any) -> str:
    owner = row if isinstance(row, Owner) else row.owner
    return "" if owner is None else owner.slug


def _group(kind: Kind, hits: Iterable[Hit]) -> Group:
    # Stable: those of one kind stay in the order of their names.
    found = sorted(hits, key=lambda hit: not hit.is_exact)
    return Group(kind=kind, hits=found[:MOST], has_more=len(found) > MOST)
