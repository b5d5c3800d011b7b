"""The rows and the visitors of the isolation matrix of pages; each test takes back its changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import Permission, User
from django.test import Client

from jobs.actions.registry import NOUNS
from jobs.calendars import approvals
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import (
    AuditEntry,
    IdempotencyKey,
    JobImport,
    Membership,
    Missed,
    Owner,
    Role,
    Run,
    Target,
    TargetGroup,
    Window,
)
from jobs.system.rollups.rolling import count_minute
from tests.jobs.actions.cases import READY
from tests.jobs.api.matrix.rows import PARAMETERS, member_of
from tests.jobs.api.matrix.world import rows_of
from tests.jobs.pages.matrix.asking import Keys
from tests.jobs.pages.matrix.places import OF_INSTALLATION, WORD, Place, view_of
from tests.jobs.pages.matrix.stored import mark, owned
from tests.jobs.scenes import keep_beating, living_worker, silence
from tests.jobs.system.rollups.minutes import minutes_ago, recorded_at

BY_PAGE: Final = {f"{noun.name}_action": noun for noun in NOUNS}
"""The nouns, by the name of the page of their actions."""


@dataclass(frozen=True, slots=True)
class World:
    """Three owners with rows of each kind, and the visitors."""

    acme: Owner
    northwind: Owner
    stranger: Owner
    keys: Mapping[int, Keys]
    """By the id of the owner: its rows, by their entries in `places.ENTRIES`."""
    visitors: Mapping[str, Client]

    def keys_of(self, owner: Owner) -> Keys:
        return self.keys[owner.pk]

    def doer_of(self, place: Place) -> Client:
        """Return the visitor that may use a page for acme."""
        return self.visitors["root" if place.id in OF_INSTALLATION else "member"]


def make_world() -> World:
    """Make the rows of acme, northwind and the stranger."""
    acme, northwind, stranger = (
        Owner.objects.create(slug=slug) for slug in ("acme", "northwind", WORD)
    )
    visitors = _visitors(acme, northwind)
    unowned = {name: one.of(acme) for name, one in PARAMETERS.items() if not one.is_owned}
    # Nothing of the system changes while the tests run.
    keep_beating()
    for worker in (unowned["worker_id"], living_worker("s1@here", queues=("system",))):
        silence(worker, seconds=-3_600)
    keys = {owner.pk: _complete(owner, unowned) for owner in (acme, northwind)}
    minute = minutes_ago(3)
    _roll(acme, minute)
    _roll(northwind, minute)
    keys[stranger.pk] = _complete(stranger, unowned)
    _roll(stranger, minute)
    for model in owned():
        mark(model, stranger)
    return World(acme, northwind, stranger, keys, visitors)


def _complete(owner: Owner, unowned: dict[str, Any]) -> dict[str, Any]:
    """Make rows of each kind of an owner; return their keys."""
    made = {name: key for (_owner, name), key in rows_of(owner, unowned).items()}
    made["view_id"] = view_of(owner)
    made["member_id"] = member_of(owner).pk
    AuditEntry.write("limit", on=owner, reason=owner.slug, whose=owner.slug)
    at = now() - timedelta(hours=1)
    Missed.objects.create(
        job_id=made["job_id"], owner=owner, first_at=at, last_at=at, count=1, reason="down"
    )
    target = Target.objects.filter(owner=owner).latest("pk")
    TargetGroup.objects.create(owner=owner, name=f"group-of-{owner.slug}").targets.add(target)
    IdempotencyKey.objects.create(owner=owner, key=f"key-of-{owner.slug}", fingerprint=b"")
    user = User.objects.get(username=made["user"])
    JobImport.objects.create(owner=owner, user=user, content=b"")
    decided = Window.objects.filter(calendar__owner=owner).latest("pk")
    approvals.approve(decided, actor=User.objects.get(username="root"), reason=owner.slug)
    return made


def _roll(owner: Owner, minute: datetime) -> None:
    """Let an attempt of an owner be in the rollups of a minute."""
    recorded_at(Run.objects.filter(owner=owner, state=State.FAILED).latest("id"), minute)
    count_minute(minute, is_final=True)


def _visitors(acme: Owner, northwind: Owner) -> dict[str, Client]:
    everything = list(Permission.objects.filter(content_type__app_label="jobs"))

    def member(name: str, role: Role, *owners: Owner) -> User:
        user = User.objects.create_user(name, is_staff=True)
        user.user_permissions.set(everything)
        for owner in owners:
            Membership.objects.create(owner=owner, user=user, role=role)
        return user

    people = {
        "member": member("mia", Role.ADMIN, acme),
        "both": member("ben", Role.ADMIN, acme, northwind),
        "read only": member("vera", Role.VIEWER, acme),
        "no permission": member("nora", Role.ADMIN, acme),
        "root": User.objects.create_superuser("root"),
    }
    User.objects.create_user("newcomer")
    people["no permission"].user_permissions.clear()
    clients = {"anonymous": Client()}
    for name, user in people.items():
        clients[name] = Client()
        clients[name].force_login(user)
    return clients


def make_ready(world: World, place: Place) -> None:
    """Let the form of a page act on the rows of acme, and those of the stranger."""
    noun = BY_PAGE.get(place.name)
    ready = READY.get(f"{place.verb}_{noun.name}") if noun else None
    if noun is None or ready is None:
        return
    [entry] = place.rows.values()
    for owner in (world.acme, world.stranger):
        ready(noun.rows().get(**{noun.key: world.keys_of(owner)[entry]}))
