"""config/playground.py: `demo` and `up` refuse to write to a foreign database."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from config.demo.world import OWNERS, USER, make_world
from config.playground import mark_database, refuse_foreign_database
from jobs.models import Owner, Target
from tests.commands import python
from tests.other_database import empty_database

COMMANDS = ("demo", "up")


@pytest.mark.django_db
@pytest.mark.parametrize("command", COMMANDS)
def test_owners_of_another_are_refused_before_the_first_write(command: str) -> None:
    """The error names them and the way out; no user, owner, target or mark was made."""
    Owner.objects.create(slug="zeta")
    with pytest.raises(CommandError, match=r"did not make \(zeta\)\. Nothing was written\."):
        call_command(command)
    assert list(Owner.objects.values_list("slug", flat=True)) == ["zeta"]
    assert not get_user_model().objects.exists()
    assert not Target.objects.exists() and not Group.objects.exists()


@pytest.mark.django_db
def test_owners_with_names_of_the_demos_are_another_s_all_the_same() -> None:
    """A customer may be called acme: without the demo's user as its admin it is not the demo's."""
    for slug in OWNERS:
        Owner.objects.create(slug=slug)
    with pytest.raises(CommandError, match="and 5 more"):
        refuse_foreign_database()


@pytest.mark.django_db
def test_the_demo_s_own_database_is_accepted_again() -> None:
    """A second demo, or an `up`, in the state folder of the first."""
    make_world(large=[], small=[])
    mark_database()
    refuse_foreign_database(with_user=True)
    make_world(large=[], small=[])


@pytest.mark.django_db
def test_a_user_named_demo_is_never_promoted() -> None:
    """Neither by the command nor by its functions, with or without owners or a mark."""
    user = get_user_model().objects.create_user(username=USER, password="kept")
    with pytest.raises(CommandError, match="a user 'demo' that the demo did not make"):
        call_command("demo")
    refuse_foreign_database()  # `up` does nothing to that user
    mark_database()
    for refused in (lambda: call_command("demo"), lambda: make_world(large=[], small=[])):
        with pytest.raises(CommandError, match="a user 'demo' that the demo did not make"):
            refused()
    user.refresh_from_db()
    assert not user.is_superuser and not user.is_staff and user.check_password("kept")
    assert not Owner.objects.exists()


@pytest.mark.django_db
def test_a_database_of_another_version_is_refused() -> None:
    """`migrate` cannot bring it to this version. The error says what erases it, marked or not."""
    mark_database()
    refuse_foreign_database()
    MigrationRecorder(connection).record_applied("jobs", "0005_windows")
    with pytest.raises(
        CommandError, match=r"\(0005_windows\)\. Nothing was written\. .*`make clean`"
    ):
        refuse_foreign_database()


@pytest.fixture
def other_database(django_db_setup: None) -> Iterator[str]:
    with empty_database() as url:
        yield url


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_of_another_project_are_refused(
    other_database: str, tmp_path: Path, command: str
) -> None:
    """A project without Fairshift is not migrated into; the error is one line."""
    with psycopg.connect(other_database) as shop:
        shop.execute("CREATE TABLE shop_order (id int)")
    environ = {"DATABASE_URL": other_database, "REDIS_URL": "redis://127.0.0.1:1/0"}
    environ |= {"SECRET_KEY": "k" * 50, "FAIRSHIFT_STATE_DIR": str(tmp_path)}
    done = python("manage.py", command, environ=os.environ | environ)
    assert done.returncode == 1
    assert "tables of another project (shop_order). Nothing was written." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    with psycopg.connect(other_database) as shop:
        found = shop.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert found.fetchall() == [("shop_order",)]
