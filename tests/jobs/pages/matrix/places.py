"""What the isolation matrix knows of each page: its example rows, its filters and its forms.

A new page is in the matrix by itself, from `jobs/urls.py`. A parameter of its address needs an
entry in EXAMPLES, a filter one in FILTERS or NAME_NO_ROW, and a form one in FORMS.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model
from django.urls import URLPattern, reverse

from jobs.actions.registry import NOUNS
from jobs.actions.runs import RUNS
from jobs.models import Owner, SavedView
from jobs.urls import urlpatterns
from tests.jobs.actions import cases
from tests.jobs.api.matrix import rows

WORD: Final = "stranger"
"""The slug of the other owner, which all texts of its rows contain."""
DAY: Final = "2030-01-05"


def view_of(owner: Owner) -> int:
    """Return a saved view of the visitor `mia` for acme, else of a member that is no visitor."""
    users = get_user_model().objects
    user = users.get(username="mia") if owner.slug == "acme" else rows.member_of(owner).user
    text = f"view of {owner.slug}"
    return SavedView.objects.create(user=user, name=text, query=f"owner={owner.slug}").pk


ENTRIES: Final[Mapping[str, rows.Parameter]] = {
    **rows.PARAMETERS,
    "view_id": rows.Parameter(view_of, rows.NONE),
    "member_id": rows.Parameter(rows.key_of("member"), rows.NONE),
}
"""Rows that addresses can name. A saved view belongs to a user: that of mia counts as acme's."""
EXAMPLES: Final[Mapping[str, str]] = {
    "runs/<uuid:run_id>": "run_id",
    "runs/<uuid:key>": "run_id",
    "submissions/<int:key>": "submission_id",
    "jobs/<int:key>": "job_id",
    "backfills/<int:key>": "backfill_id",
    "calendars/<int:key>": "calendar_id",
    "months/<slug:kind>/<int:key>": "job_id",
    "windows/<int:key>": "window_id",
    "workers/<uuid:worker_id>": "worker_id",
    "workers/<uuid:key>": "worker_id",
    "owners/<str:slug>": "slug",
    "owners/<str:key>": "slug",
    "tokens/<str:key>": "prefix",
    "webhooks/<int:key>": "webhook_id",
    "mail-subscriptions/<int:key>": "subscription_id",
    "runs/views/<int:key>": "view_id",
    "members/<int:key>": "member_id",
}
"""The rows of an address up to its parameter: the name of their entry in `ENTRIES`."""
GIVEN: Final[Mapping[str, str]] = {
    "calendars/<int:key>/day/<str:day>": DAY,
    "months/<slug:kind>": "job",
}
"""Parameters that name no row, by the address up to them."""
VERBS: Final[Mapping[str, Mapping[str, Any]]] = {
    "run_actions": {action.name: action for action in RUNS.actions if action.is_for_many},
    **{f"{noun.name}_action": {action.name: action for action in noun.actions} for noun in NOUNS},
}
"""The words that the last parameter of an address can be; each is a page."""

WITHOUT_LOGIN: Final = frozenset(
    {"calendar_feed", "login", "logout", "theme", "metrics", "live", "ready"}
)
"""They show no rows, but for two.

The feed's secret address is the access (test_calendars); metrics need a token of the installation
(tests/jobs/pages/metrics/test_access.py).
"""

REASON: Final = {"reason": "as asked"}
FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{f"run_actions {action.name}": REASON for action in RUNS.actions if action.is_for_many},
    "run_actions move": {**REASON, "to": "tests.add"},
    **{
        f"{noun.name}_action {action.name}": {
            **REASON,
            **(cases.as_typed(cases.NEW.get(noun.name, {})) if action.name == "change" else {}),
            **cases.as_typed(cases.BODIES.get(f"{action.name}_{noun.name}", {})),
        }
        for noun in NOUNS
        for action in noun.actions
    },
    **{
        f"create_{noun}": {"owner": "{slug}", **cases.as_typed(body)}
        for noun, body in cases.NEW.items()
    },
    "submit": {
        "owner": "{slug}",
        "task": "tests.echo",
        "arguments": '{"text": "{target}"}',
        "names": "sw-9",
        "submit": "1",
    },
    "save_view": {"name": "mine"},
    "rename_view": {"name": "mine"},
    "delete_view": {},
}
"""What a visitor fills in, by page. All other fields stay as the page shows them."""
QUERIES: Final[Mapping[str, Mapping[str, str]]] = {
    **{f"run_actions {action.name}": {"task": "tests.add"} for action in RUNS.actions},
    "save_view": {"state": "open"},
    "search": {"q": "target-of-"},
}
"""Filters without which a page shows nothing. Rows of all owners match them."""
OF_INSTALLATION: Final = frozenset(
    {"worker_action drain", "worker_action undrain", "plan", "create_owner", "create_member"}
)
"""Verbs and pages that only a superuser may use."""
OF_VISITOR: Final = frozenset({"saved_views", "save_view", "rename_view", "delete_view"})
"""Pages of the visitor's own rows: no role gives access to those of others, nor takes it."""
SHOW_NO_TEXT: Final = OF_VISITOR | {
    "create_owner",
    "workers",
    "worker_action drain",
    "worker_action undrain",
    "plan",
}
"""Pages that count rows of owners, or show none."""

FILTERS: Final = {
    **rows.FILTERS,
    "slug": lambda owner: owner.slug[:-1],
    "q": lambda owner: f"target-of-{owner.slug}",
}
"""Filters that may name a row of an owner: such a value."""
NAME_NO_ROW: Final = rows.NAME_NO_ROW | {"age", "since", "health", "approval", "queue"}


@dataclass(frozen=True, slots=True)
class Place:
    """One page, or one verb of a page whose address ends with verbs."""

    id: str
    name: str
    """The name of the address."""
    route: str
    parameters: Mapping[str, str]
    """The parameters of its address, and the address up to each."""
    verb: str = ""

    @property
    def rows(self) -> Mapping[str, str]:
        """Parameters that name a row, and the entries of these in `ENTRIES`."""
        return {name: EXAMPLES[to] for name, to in self.parameters.items() if to in EXAMPLES}

    @property
    def missing(self) -> set[str]:
        """Parameters of which nothing is known, each as the address up to it."""
        return set(self.parameters.values()) - set(EXAMPLES) - set(GIVEN)

    @property
    def is_of_row(self) -> bool:
        """Whether a row that belongs to an owner is in its address."""
        return any(ENTRIES[entry].is_owned for entry in self.rows.values())

    @property
    def has_form(self) -> bool:
        return self.id in FORMS

    def address(self, keys: Mapping[str, Any], **query: str) -> str:
        """Return the address with these rows, by their entries in `ENTRIES`."""
        assert not self.missing, f"{self.id}: add {self.missing} to EXAMPLES in places.py"
        given = {name: keys[entry] for name, entry in self.rows.items()}
        given |= {name: GIVEN[to] for name, to in self.parameters.items() if to in GIVEN}
        if self.verb:
            given["name"] = self.verb
        asked = {**QUERIES.get(self.id, {}), **query}
        return reverse(f"jobs:{self.name}", kwargs=given, query=asked or None)

    def __str__(self) -> str:
        return self.id


def places() -> Iterator[Place]:
    """Return every page of `jobs/urls.py`; the API has a matrix of its own."""
    for pattern in urlpatterns:
        if not isinstance(pattern, URLPattern) or pattern.name in WITHOUT_LOGIN:
            continue
        name, route = str(pattern.name), str(pattern.pattern)
        parameters = {
            found: f"{route.partition(f':{found}>')[0]}:{found}>"
            for found in pattern.pattern.converters
        }
        verbs = VERBS.get(name)
        if verbs is None:
            yield Place(name, name, route, parameters)
            continue
        del parameters["name"]
        for verb in verbs:
            yield Place(f"{name} {verb}", name, route, parameters, verb)


def unknown_keys() -> dict[str, Any]:
    """Return keys of the right form that no row has."""
    return {entry: ENTRIES[entry].unknown for entry in EXAMPLES.values()}


def value_of(name: str, owner: Owner) -> str:
    """Return the value of a filter that finds rows of an owner."""
    return FILTERS[name](owner)


PLACES: Final = list(places())
LISTS: Final = [one for one in PLACES if not one.is_of_row]
OF_ROWS: Final = [one for one in PLACES if one.is_of_row]
WITH_FORMS: Final = [one for one in PLACES if one.has_form]


def by(chosen: list[Place]) -> pytest.MarkDecorator:
    """Return the mark of a test that runs once for each of these pages."""
    return pytest.mark.parametrize("place", chosen, ids=str)
