"""Which databases `manage.py demo` and `manage.py up` may write to.

Both migrate, and make users and owners. So they write only to a database that they have marked,
or that has no other data.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from config.demo.world import GROUP, refuse_foreign_user
from jobs.models import Owner

NAMED_COUNT = 3
"""How many owners or tables an error names."""


def refuse_foreign_database(*, with_user: bool = False) -> None:
    """Raise CommandError, before anything is written, if the database may have other data.

    Refused, too: one of another version of Fairshift that `migrate` cannot update. Accepted: a
    database without tables, one that `mark_database` has marked, and one without owners.
    `with_user`: also refuse a user with the demo's name that the demo has not made.
    """
    _refuse_other_version()
    tables = set(connection.introspection.table_names())
    if Owner._meta.db_table not in tables:
        _refuse_other_project(tables)
        return
    if Group.objects.filter(name=GROUP).exists():
        if with_user:
            refuse_foreign_user()
        return
    owners = sorted(Owner.objects.values_list("slug", flat=True))
    if owners:
        raise _foreign(f"owners that `demo` and `up` did not make ({_few(owners)})")
    if with_user:
        refuse_foreign_user()


def mark_database() -> None:
    """Mark the migrated database as one that `demo` and `up` may write to."""
    Group.objects.get_or_create(name=GROUP)


def _refuse_other_version() -> None:
    """Raise CommandError if this version lacks a migration of Fairshift that was applied."""
    loader = MigrationLoader(connection)
    unknown = sorted(loader.applied_migrations.keys() - loader.disk_migrations.keys())
    if names := [name for app, name in unknown if app == "jobs"]:
        raise CommandError(
            f"The database {settings.DATABASES['default']['NAME']!r} was made by another version of"
            f" Fairshift, which had migrations that this one lacks ({_few(names)}). Nothing was"
            " written. Run `make clean`, which erases the embedded database with all its data, or"
            " set DATABASE_URL to an empty one."
        )


def _refuse_other_project(tables: set[str]) -> None:
    """Raise CommandError if there are other tables or users, without Fairshift's tables.

    The tables of an interrupted first `migrate` are accepted.
    """
    known = {"django_migrations", *connection.introspection.django_table_names()}
    if unknown := sorted(tables - known):
        raise _foreign(f"tables of another project ({_few(unknown)})")
    users = get_user_model()
    if users._meta.db_table in tables and users.objects.values_list("pk").exists():
        raise _foreign("users of another project")


def _few(names: list[str]) -> str:
    more = len(names) - NAMED_COUNT
    return ", ".join(names[:NAMED_COUNT]) + (f" and {more} more" if more > 0 else "")


def _foreign(what: str) -> CommandError:
    return CommandError(
        f"The database {settings.DATABASES['default']['NAME']!r} holds {what}. Nothing was written."
        " `demo` and `up` need a database of their own: set DATABASE_URL to an empty one, or leave"
        " it out and set FAIRSHIFT_STATE_DIR to an empty folder."
    )
