"""The isolation matrix over HTTP, of web processes that share connections to PostgreSQL.

As `tests/jobs/api/matrix` and `tests/jobs/pages/matrix`, whose rows are committed here.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pytest
import urllib3
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import override_settings

from jobs.models import Owner
from jobs.owners.tokens import make_token
from tests.flows.conftest import _empty
from tests.flows.pooled import DJANGOS_POOL, behind_pgbouncer
from tests.flows.processes import Processes
from tests.flows.web import site
from tests.jobs.api.conftest import ALL
from tests.jobs.api.matrix.rows import FILTERS, words_of
from tests.jobs.api.matrix.test_isolation import (
    GUESSED,
    OF_ROWS,
)
from tests.jobs.api.matrix.world import World, callers_of, send, unknown_keys
from tests.jobs.pages.matrix.places import OF_INSTALLATION as PAGES_OF_INSTALLATION
from tests.jobs.pages.matrix.places import PLACES, WORD, Place
from tests.jobs.pages.matrix.places import unknown_keys as unknown_page_keys
from tests.jobs.pages.matrix.stored import stored
from tests.jobs.pages.matrix.world import World as Pages
from tests.jobs.pages.matrix.world import make_world

pytestmark = pytest.mark.proof

LISTS: Final = ("/runs", "/jobs", "/calendars", "/owners")
"""Lists that name the owner of their rows."""
ROUNDS: Final = 30
"""How often each caller asks for each of them, side by side with the others."""


@dataclass(frozen=True)
class Answer:
    """What a web process has answered."""

    status_code: int
    content: bytes
    headers: Mapping[str, str]


class Caller:
    """Requests to web processes, in the form of Django's test client."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url, self._headers = url, headers
        self._pool = urllib3.PoolManager(retries=False, timeout=120)

    def __getattr__(self, method: str) -> Any:
        def call(
            path: str,
            data: Any = None,
            content_type: str = "",
            headers: Mapping[str, str] | None = None,
        ) -> Answer:
            sent = {**self._headers, **(headers or {})}
            if content_type:
                given: dict[str, Any] = {"body": data}
                sent["Content-Type"] = content_type
            else:
                given = {"fields": data} if data else {}
            answer = self._pool.request(
                method.upper(), self._url + path, headers=sent, redirect=False, **given
            )
            found = {name: value for name, value in answer.headers.items() if name != "Date"}
            return Answer(answer.status, answer.data, found)

        return call


def stored_now(owner: Owner | None = None) -> Any:
    """Return all committed rows, or those of one owner."""
    with transaction.atomic():
        return stored(owner)


@pytest.fixture(scope="module")
def folder(db: None, tmp_path_factory: pytest.TempPathFactory) -> Processes:
    return Processes(tmp_path_factory.mktemp("pooled"))


@pytest.fixture(scope="module")
def pages(db: None) -> Iterator[Pages]:
    """Rows of each kind of three owners, committed."""
    tasks = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}
    with override_settings(FAIRSHIFT=tasks):
        yield make_world()
    _empty()
    get_user_model().objects.all().delete()
    Session.objects.all().delete()


@pytest.fixture(scope="module")
def url(folder: Processes, pages: Pages) -> Iterator[str]:
    """The address of web processes behind PgBouncer."""
    with (
        behind_pgbouncer() as environ,
        site(folder, "", SECRET_KEY=settings.SECRET_KEY, **environ) as found,
    ):
        yield found.url


@pytest.fixture(scope="module")
def world(pages: Pages, url: str) -> World:
    """The rows as the matrix of the API knows them, and callers over HTTP."""
    acme, stranger = pages.acme, pages.stranger
    return World(
        acme=acme,
        stranger=stranger,
        keys={(pk, name): key for pk, keys in pages.keys.items() for name, key in keys.items()},
        callers=callers_of(acme, lambda secret: of_token(url, secret)),  # type: ignore[arg-type, return-value]
        alone={},
        secrets=frozenset(words_of(stranger)),
        filters={name: value(stranger) for name, value in FILTERS.items()},
        untouched={owner: stored_now(owner) for owner in (None, stranger)},
    )


def of_token(url: str, secret: str) -> Caller:
    return Caller(url, {"Authorization": f"Bearer {secret}"} if secret else {})


def of_session(url: str, pages: Pages, name: str) -> Caller:
    """Return a visitor with the session of one of the matrix of pages."""
    session = pages.visitors[name].cookies[settings.SESSION_COOKIE_NAME].value
    return Caller(url, {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"})


@pytest.mark.smoke
def test_foreign_rows_are_answered_as_unknown_ones(world: World) -> None:
    """By each operation of the API, with the same bytes and headers, and without a change."""
    client = world.callers["acme"]
    for operation in OF_ROWS:
        mine, foreign = (world.keys_of(operation, one) for one in (world.acme, world.stranger))
        unknown = unknown_keys(operation)
        pairs = [(foreign, unknown)]
        if len(operation.owned) > 1:
            pairs += [
                ({**mine, name: foreign[name]}, {**mine, name: unknown[name]})
                for name in operation.owned
            ]
        for pair in pairs:
            one, other = (send(client, operation, keys, **GUESSED) for keys in pair)
            assert one == other, operation.id
            assert one.status_code == 404, (operation.id, one.content)
    assert stored_now() == world.untouched[None]


def seen_side_by_side(url: str, slugs: list[str]) -> None:
    """Fail if an owner's token is shown the rows of another one, while both ask."""
    secrets = {
        slug: make_token("aside", scopes=ALL, owner=Owner.objects.get(slug=slug)).secret
        for slug in slugs
    }

    def ask(slug: str) -> None:
        caller = of_token(url, secrets[slug])
        others = {other.encode() for other in slugs if other != slug}
        for path in LISTS * ROUNDS:
            answer = caller.get(f"/api/v1{path}")
            assert answer.status_code == 200 and slug.encode() in answer.content, answer
            assert not [other for other in others if other in answer.content], path

    with ThreadPoolExecutor(len(slugs) * 2) as threads:
        for done in [threads.submit(ask, slug) for slug in slugs * 2]:
            done.result()


def test_callers_side_by_side_get_their_own_rows(pages: Pages, url: str) -> None:
    """Their statements take turns on the same connections, which keep no caller's rights."""
    seen_side_by_side(url, ["acme", "northwind", WORD])


def test_callers_of_djangos_pool_get_their_own_rows(folder: Processes, pages: Pages) -> None:
    with site(folder, "", SECRET_KEY=settings.SECRET_KEY, **DJANGOS_POOL) as found:
        seen_side_by_side(found.url, ["acme", "northwind", WORD])


def test_pages_are_shown(pages: Pages, url: str) -> None:
    """Each page, with rows of the visitor's owner only; a foreign row is an unknown one."""
    member, root = (of_session(url, pages, name) for name in ("member", "root"))
    for place in PLACES:
        is_of_installation = place.id in PAGES_OF_INSTALLATION
        answer = (root if is_of_installation else member).get(
            place.address(pages.keys_of(pages.acme))
        )
        # A form may have nothing to act on.
        assert answer.status_code == 200 or (place.has_form and answer.status_code < 403), place.id
        if is_of_installation:
            continue
        assert WORD not in answer.content.decode(), place.id
        if place.is_of_row:
            assert _foreign(member, place, pages) == 404, place.id


def _foreign(member: Caller, place: Place, pages: Pages) -> int:
    """Return the status of a foreign row's page, which is that of an unknown one."""
    foreign = pages.keys_of(pages.stranger)
    one, other = (
        member.get(place.address({**foreign, **keys})) for keys in (foreign, unknown_page_keys())
    )
    assert one.content == other.content, place.id
    return one.status_code
