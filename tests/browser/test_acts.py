"""What the pages do beside actions on one row: by mouse, light, wide; by keyboard, dark, narrow."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.models import AuditEntry, Owner, Run, SavedView
from tests.browser.conftest import NARROW
from tests.browser.hands import Hands, Keyboard, Mouse
from tests.browser.story import tell
from tests.jobs.scenes import failed, submitted

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
REASON = "agreed by phone"


@dataclass
class World:
    """The keys of what the acts are on."""

    keys: dict[str, Any]
    hands: Hands

    def path(self, text: str) -> str:
        return text.format(**self.keys)

    def text(self) -> str:
        return str(self.hands.page.locator("main").inner_text())

    def state(self, name: str) -> str:
        return str(Run.objects.get(pk=self.keys[name]).state)


Effect = Callable[[World], Any]


@dataclass(frozen=True)
class Act:
    """A row of the table: on which page, which steps, and what has changed outside of it.

    A step is the name of a method of Hands with its arguments.
    """

    path: str
    steps: tuple[tuple[str, ...], ...]
    effect: Effect

    def play(self, world: World) -> None:
        world.hands.open(world.path(self.path))
        for name, *arguments in self.steps:
            getattr(world.hands, name)(*arguments)
        assert self.effect(world), world.text()


def verb(path: str, link: str, effect: Effect) -> Act:
    """Return an act with a page that asks: link, fields, reason, confirmation."""
    return Act(path, (("follow", link), ("type", "reason", REASON), ("send",)), effect)


def filtered(path: str, field: str, value: str, *, shows: str, hides: str) -> Act:
    """Return the filter of a list: the address has it, and a row is gone."""
    steps = (("fill", field, value), ("send", ".filter button.main"))
    return Act(path, steps, _finds(field, shows, hides))


def _finds(field: str, shows: str, hides: str) -> Effect:
    def found(world: World) -> bool:
        rows = world.hands.page.locator("main tbody").all_inner_texts()
        text = " ".join(rows)
        return f"{field}=" in world.hands.page.url and shows in text and hides not in text

    return found


def view(world: World, name: str) -> bool:
    return SavedView.objects.filter(name=name, user__username="root").exists()


def cookie(world: World, name: str) -> str | None:
    found = {one["name"]: one["value"] for one in world.hands.page.context.cookies()}
    return found.get(name)


def focused(world: World) -> int:
    """Return the number of the row of the list that has the focus; 0: none."""
    number: int = world.hands.page.evaluate(
        "[...document.querySelectorAll('main tbody tr')]"
        ".findIndex(row => row.contains(document.activeElement)) + 1"
    )
    return number


FILTERS = {
    "filter runs by label": filtered(
        "/runs/", "label", "site:berlin", shows="Timeout", hides="northwind"
    ),
    "filter runs by state": filtered("/runs/", "state", "failed", shows="Timeout", hides="queued"),
    "filter calendars by approval": filtered(
        "/calendars/", "approval", "asked", shows="nights", hides="noon"
    ),
    "filter workers": filtered("/workers/", "state", "lost", shows="w2@here", hides="s1@here"),
    "filter owners": filtered("/owners/", "search", "ac", shows="acme", hides="northwind"),
}
"""A text and an option, with a live part and without one: all filters are the same form."""
RUNS = {
    "cancel all of a filter": verb(
        "/runs/?label=site%3Amunich",
        "Cancel…",
        lambda w: w.state("munich") == "cancelled" and "3 of 3" in w.text(),
    ),
    "retry a group of failures": verb(
        "/failures/?error=builtins.TimeoutError",
        "retry ",
        lambda w: w.state("grouped") != "failed" and AuditEntry.objects.latest("pk").reason,
    ),
    "save a view": Act(
        "/runs/?state=failed",
        (("follow", "Save this view…"), ("type", "name", "Failed now"), ("send",)),
        lambda w: view(w, "Failed now"),
    ),
    "open a view": Act(
        "/runs/",
        (("follow", "Failed now"),),
        lambda w: w.hands.page.url.endswith("/runs/?state=failed"),
    ),
    "rename a view": Act(
        "/runs/views/",
        (("follow", "Rename…"), ("type", "name", "Broken now"), ("send",)),
        lambda w: view(w, "Broken now") and not view(w, "Failed now"),
    ),
    "delete a view": Act(
        "/runs/views/", (("follow", "Delete…"), ("send",)), lambda w: not view(w, "Broken now")
    ),
}
CALENDARS = {
    "see whether it fits": Act(
        "/calendars/{calendar}/", (("follow", "Will it fit?"),), lambda w: "openings" in w.text()
    ),
    "open a day": Act(
        "/calendars/{calendar}/",
        (("send", ".day a.date:visible"),),
        lambda w: "/day/" in w.hands.page.url,
    ),
}
FRAME = {
    "walk a list": Act("/runs/", (("key", "j"), ("key", "j")), lambda w: focused(w) == 2),
    "walk back": Act("/runs/", (("key", "j"), ("key", "j"), ("key", "k")), focused),
    "list the keys": Act(
        "/audit/", (("key", "?"),), lambda w: w.hands.page.locator("[data-keys][open]").count()
    ),
    "choose a time zone": Act(
        "/runs/",
        (("type", "zone", "Asia/Tokyo"), ("send", "footer button")),
        lambda w: cookie(w, "fairshift_zone"),
    ),
    "log out": Act(
        "/", (("send", "footer form[action*=logout] button"),), lambda w: not cookie(w, "sessionid")
    ),
    "log in": Act(
        "/login/?next=/owners/",
        (("type", "username", "root"), ("type", "password", "root"), ("send",)),
        lambda w: cookie(w, "sessionid") and w.hands.page.url.endswith("/owners/"),
    ),
}
ACTS = FILTERS | RUNS | CALENDARS | FRAME


@pytest.fixture
def keys(acme: Owner, site: str) -> Iterator[dict[str, Any]]:
    """A world in which each act has an object of its own."""
    berlin = {"labels": {"site": "berlin"}, "target": "sw-1"}
    grouped = failed(acme, "builtins.TimeoutError", "no answer within 5 s", **berlin)
    munich = submitted(acme, 3, labels={"site": "munich"})
    yield tell(acme) | {"munich": munich[0].pk, "grouped": grouped.pk}
    SavedView.objects.filter(user=User.objects.get(username="root")).delete()


@pytest.mark.parametrize(
    ("hands", "scheme", "size"),
    [(Mouse, "light", {"width": 1280, "height": 850}), (Keyboard, "dark", NARROW)],
    ids=["mouse-light-1280", "keyboard-dark-360"],
)
def test_every_act_of_the_pages(
    browse: Browse, keys: dict[str, Any], hands: type[Hands], scheme: str, size: dict[str, int]
) -> None:
    """Each has its effect in the database; no page on the way has a barrier or an error.

    The search and the colours come first and last: their forms are outside of the content.
    """
    page = browse("/", viewport=size, color_scheme=scheme, timezone_id="UTC")
    page.set_default_timeout(100_000)
    world = World(keys, hands(page, name=f"{scheme}-{size['width']}"))
    page.keyboard.press("/")
    page.keyboard.type("sw")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.endswith("/search/?q=sw") and "sw-1" in world.text()
    wrong = []
    for name, act in ACTS.items():
        try:
            act.play(world)
        except Exception as error:
            wrong.append(f"{name}: {str(error)[:600]}")
    world.hands.choose("theme", "dark")
    world.hands.send("footer button")
    assert cookie(world, "fairshift_theme") == "dark"
    assert not wrong, "\n\n".join(wrong)
