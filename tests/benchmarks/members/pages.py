"""pages: the first page of every filter of every list, and polls, over millions of rows."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from html import unescape
from http import HTTPStatus
from itertools import combinations
from statistics import median
from typing import Any, Final
from urllib.parse import urlencode

from jobs.management.stack.programs import web
from jobs.management.stack.stack import free_port
from tests.benchmarks.http_client import Browser
from tests.benchmarks.pages_in_rows import OWNER, put_in
from tests.benchmarks.rows import Row
from tests.benchmarks.world import START_SECONDS, BenchmarkError, World

PAGE_MILLISECONDS: Final = 200
POLL_MILLISECONDS: Final = 20

OTHER: Final = "o7"
"""An owner with few runs. For the member of OWNER it does not exist."""
VALUES: Final[Mapping[str, Sequence[str]]] = {
    "owner": (OWNER, OTHER),
    "task": ("bench.work", "bench.nothing"),
    "job": ("bench-7", "nothing"),
    "target": ("bench-7", "nothing"),
    "submission": ("7", "999999999"),
    "label": ("site:site-7", "serial:7", "site:nowhere", "label-7"),
    "error": ("builtins.ValueError", "builtins.KeyError"),
    "after": ("2026-01-01T00:00", "2099-01-01T00:00"),
    "before": ("2099-01-01T00:00", "2000-01-01T00:00"),
    "search": ("job-7", "bench-", "nothing"),
    "slug": ("o", "o77", "nothing"),
    "name": ("night", "nothing"),
    "actor": ("person-7", "nobody"),
    "object_type": ("run", "nothing"),
    "object_id": ("7", "nothing"),
    "queue": ("jobs", "nothing"),
}
"""What is typed into text fields: values of many rows, of few, and of none."""
SEARCHES: Final = ("job-7", "o7", "bench-7", "bench.work", "7", "018f", "nothing", "a", "019")
"""Terms of the search: each kind of row, many and none."""

_FORM: Final = re.compile(r'<form class="card filter".*?</form>', re.DOTALL)
_FIELD: Final = re.compile(r'<select name="(\w+)".*?</select>|<input[^>]*? name="(\w+)"', re.DOTALL)
_OPTION: Final = re.compile(r'<option value="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Question:
    """One address that is asked for. `what` is its page and the fields of its filter."""

    what: str
    address: str


def measure(world: World) -> list[Row]:
    """Ask for each page with each filter, as a superuser and as a member of one owner."""
    world.begin()
    runs = world.pick(1_000_000, 200_000, large=10_000_000)
    others = world.pick(100_000, 20_000, large=1_000_000)
    put_in(runs=runs, jobs=others, audited=others)
    rows = ask_all(world)
    world.begin()
    return rows


def ask_all(world: World) -> list[Row]:
    """Ask for the pages of the rows that are there."""
    with _served(world) as port:
        visitors = {name: Browser(port, key) for name, key in _sessions().items()}
        questions = list(_questions(visitors["superuser"]))
        pages = {name: _asked(world, visitor, questions) for name, visitor in visitors.items()}
        polls = {name: _polled(world, visitor) for name, visitor in visitors.items()}
        for visitor in visitors.values():
            visitor.close()
    return [*_rows(pages, at_most=PAGE_MILLISECONDS), *_rows(polls, at_most=POLL_MILLISECONDS)]


@contextmanager
def _served(world: World) -> Iterator[int]:
    from django.conf import settings

    port = free_port(8_060)
    # Sessions that this process has made are read by the web processes.
    environment = {"ALLOWED_HOSTS": "127.0.0.1", "SECRET_KEY": settings.SECRET_KEY}
    environment["FAIRSHIFT_OFFERED_TASKS"] = "bench.*"
    with world.up(web(port=port, processes=2, threads=4, environment=environment)) as stack:
        stack.wait_ready(seconds=START_SECONDS)
        yield port


def _sessions() -> dict[str, str]:
    """Return the session of a superuser, and that of a member of one owner."""
    from django.contrib.auth.models import Permission, User

    from jobs.models import Membership, Owner, Role

    member = User.objects.create_user("member", is_staff=True)
    member.user_permissions.set(Permission.objects.filter(content_type__app_label="jobs"))
    Membership.objects.create(owner=Owner.objects.get(slug=OWNER), user=member, role=Role.ADMIN)
    root = User.objects.create_superuser("superuser")
    return {"superuser": _session_of(root), "member": _session_of(member)}


def _session_of(user: Any) -> str:
    from django.contrib import auth
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session[auth.SESSION_KEY] = str(user.pk)
    session[auth.BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return session.session_key or ""


def _questions(visitor: Browser) -> Iterator[Question]:
    """Find the filters of each page in its form: each value alone, and the fields in pairs."""
    from jobs.pages.kit import nav

    for name, _label, _key in nav.ENTRIES:
        address = nav.address(name) or ""
        yield Question(name, address)
        form = _FORM.search(visitor.call("GET", address, status=200).body.decode())
        fields = {"owner": VALUES["owner"], **_fields(form.group() if form else "")}
        for field, values in fields.items():
            for value in values:
                yield Question(f"{name} by {field}", f"{address}?{urlencode({field: value})}")
        for pair in combinations(fields, 2):
            query = urlencode({field: fields[field][0] for field in pair})
            yield Question(f"{name} by two fields", f"{address}?{query}")
    for term in SEARCHES:
        yield Question(nav.SEARCH, f"{nav.address(nav.SEARCH)}?{urlencode({'q': term})}")
    for name, key in _keys().items():
        yield Question(f"one {name}", nav.address(name, key) or "")


def _fields(form: str) -> dict[str, Sequence[str]]:
    """Return the values of each field in the HTML of a filter: all choices, or what is typed."""
    found: dict[str, Sequence[str]] = {}
    for match in _FIELD.finditer(form):
        chosen, typed = match.groups()
        if chosen:
            found[chosen] = [unescape(value) for value in _OPTION.findall(match.group())]
        elif typed in VALUES:
            found[typed] = VALUES[typed]
        else:
            raise BenchmarkError(f"add values of the filter {typed!r} to VALUES")
    return found


def _keys() -> dict[str, Any]:
    """Return a row for each page of one row, the largest of its kind."""
    from jobs.models import Job, Run, Submission, Worker

    return {
        "run": Run.objects.filter(owner__slug=OWNER).latest("id").pk,
        "submission": Submission.objects.filter(owner__slug=OWNER, run_count__gt=1_000)
        .latest("pk")
        .pk,
        "job": Job.objects.filter(owner__slug=OWNER).latest("pk").pk,
        "owner": OWNER,
        "worker": Worker.objects.latest("started_at").pk,
    }


Asked = Mapping[str, Mapping[str, Sequence[float]]]
"""Milliseconds, by what was asked and its address."""


def _asked(world: World, visitor: Browser, questions: Sequence[Question]) -> Asked:
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for question in questions:
        at = question.address
        status = visitor.call("GET", at).status
        if status >= HTTPStatus.BAD_REQUEST and f"owner={OTHER}" not in at:
            raise BenchmarkError(f"{at}: {status}")
        found[question.what][at] = [
            _milliseconds(partial(visitor.call, "GET", at, status=status))
            for _ in range(world.pick(5, 3))
        ]
    return found


def _polled(world: World, visitor: Browser) -> Asked:
    """Poll each page that has a live part."""
    from jobs.pages.kit import nav

    addresses = {name: nav.address(name) or "" for name, _label, _key in nav.ENTRIES}
    addresses |= {f"one {name}": nav.address(name, key) or "" for name, key in _keys().items()}
    return {
        f"poll of {name}": {address: _unchanged(visitor, address, count=world.pick(20, 5))}
        for name, address in addresses.items()
        if "data-live" in visitor.call("GET", address, status=200).body.decode()
    }


def _unchanged(visitor: Browser, address: str, *, count: int) -> list[float]:
    """Return the milliseconds of polls that were answered 304: the wait of a backlog changes."""
    etag, took = "", []
    for _ in range(10 * count):
        began = time.monotonic()
        answer = visitor.poll(address, etag=etag)
        if answer.status == HTTPStatus.NOT_MODIFIED:
            took.append(1_000 * (time.monotonic() - began))
        etag = answer.headers["etag"]
        if len(took) == count:
            return took
    raise BenchmarkError(f"{address} has changed with nearly each poll")


def _milliseconds(ask: Callable[[], Any]) -> float:
    began = time.monotonic()
    ask()
    return 1_000 * (time.monotonic() - began)


def _rows(asked: Mapping[str, Asked], *, at_most: float) -> list[Row]:
    """Return a row for each page and field: the p50 of its slowest address, and the worst time."""
    rows = []
    for what in next(iter(asked.values())):
        samples = {
            f"{address} as {visitor}": times
            for visitor, found in asked.items()
            for address, times in found[what].items()
        }
        slowest = max(samples, key=lambda name: median(samples[name]))
        worst = max(time for times in samples.values() for time in times)
        rows.append(
            Row(
                what=f"{what}, p50 of {slowest}; the worst: {worst:.0f} ms",
                unit="ms",
                figure=median(samples[slowest]),
                at_most=at_most,
                of_figure=True,
                samples=samples,
            )
        )
    return rows
