"""The demo's data: owners, devices as targets, and a login."""

import re
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management.base import CommandError
from django.db import connection

from config.demo.devices import FIRST_VERSION
from config.demo.tasks import activate_ruleset, check_health
from jobs import delete_jobs, upsert_jobs
from jobs.models import Job, Membership, Owner, Role, Run, Submission, Target
from jobs.runs.cancellation import cancel_runs

LARGE_OWNER = "northwind"
SMALL_OWNER = "acme"
CHECKING_OWNER = "netwatch"
CHECK_MINUTES = 1
# By weight. Those not named above have agreed hours: see agreed_hours.
OWNERS = {
    LARGE_OWNER: 1,
    SMALL_OWNER: 1,
    CHECKING_OWNER: 1,
    "contoso": 2,
    "globex": 4,
    "initech": 1,
    "litware": 1,
    "adatum": 1,
}
USER = "demo"
GROUP = "made by manage.py demo and up"
"""A group without permissions. It marks a database that `demo` or `up` may write to (see
config/playground.py); its members are the users that the demo has made."""


@dataclass(frozen=True, slots=True)
class Login:
    """A user name and its new password."""

    user: str
    password: str


def make_world(*, large: Sequence[str], small: Sequence[str]) -> Login:
    """Create missing owners and targets; return a login with a new password.

    Raises CommandError if a user that the demo has not made has the demo's name.
    """
    refuse_foreign_user()
    user, _ = get_user_model().objects.get_or_create(username=USER)
    user.groups.add(Group.objects.get_or_create(name=GROUP)[0])
    user.is_staff = user.is_superuser = True
    login = Login(USER, secrets.token_urlsafe(12))
    user.set_password(login.password)
    user.save()
    owners = {}
    for slug, weight in OWNERS.items():
        owner, _ = Owner.objects.get_or_create(
            slug=slug, defaults={"name": slug.capitalize(), "weight": weight}
        )
        Membership.objects.get_or_create(owner=owner, user=user, defaults={"role": Role.ADMIN})
        owners[slug] = owner
    Target.objects.bulk_create(
        [
            Target(owner=owners[slug], name=name)
            for slug, names in ((LARGE_OWNER, large), (SMALL_OWNER, small))
            for name in names
        ],
        ignore_conflicts=True,
    )
    return login


def refuse_foreign_user() -> None:
    """Raise CommandError if there is a user `demo` that the demo has not made."""
    named = get_user_model().objects.filter(username=USER)
    if named.exists() and not named.filter(groups__name=GROUP).exists():
        raise CommandError(
            f"The database has a user {USER!r} that the demo did not make. The demo would make that"
            " user a superuser with a new password, so it does not start. Rename the user, or use"
            " another database."
        )


def make_checks(devices: Sequence[str]) -> None:
    """Make one job for each device, and no other, that checks its health every minute."""
    keys = {f"health of {name}": name for name in devices}
    gone = Job.objects.filter(owner__slug=CHECKING_OWNER).exclude(key__in=keys)
    delete_jobs(CHECKING_OWNER, list(gone.values_list("key", flat=True)))
    upsert_jobs(
        CHECKING_OWNER,
        [
            {
                "key": key,
                "task": check_health.name,
                "arguments": {"device": name},
                "interval_minutes": CHECK_MINUTES,
                "misfire": "skip",
            }
            for key, name in keys.items()
        ],
    )


def end_world() -> None:
    """Switch the demo's jobs off and cancel its waiting runs: no other worker knows its tasks.

    In another thread, on a new connection: an interrupt may have broken a statement on this one.
    """
    with ThreadPoolExecutor(1) as apart:
        apart.submit(_end_world).result()


def _end_world() -> None:
    try:
        Job.objects.filter(owner__slug=CHECKING_OWNER).update(enabled=False)
        waiting = Run.objects.open().filter(task__startswith=f"{check_health.__module__}.")
        cancel_runs(list(waiting.values_list("id", flat=True)), reason="the demo has ended")
    finally:
        connection.close()


def next_version() -> int:
    """Return the version after the newest that a demo has submitted here."""
    labels = Submission.objects.filter(task=activate_ruleset.name).values_list("label", flat=True)
    numbers = (re.search(r"ruleset (\d+)$", label) for label in labels)
    return max((int(found[1]) for found in numbers if found), default=FIRST_VERSION) + 1
