"""A project with another model of users has everything that one with Django's has."""

import json
import os

import pytest

from tests.commands import python
from tests.other_database import empty_database

OURS = {
    "DJANGO_SETTINGS_MODULE": "tests.own_users.settings",
    "SECRET_KEY": "k" * 50,
    "DEBUG": "1",
    "FAIRSHIFT_TASKS": "tests.tasks",
}


def test_the_project_is_sound() -> None:
    """Django's and our checks load every model, form, page and admin of it; none finds fault."""
    done = python("manage.py", "check", "--fail-level", "ERROR", environ={**os.environ, **OURS})
    assert done.returncode == 0, done.stderr


@pytest.mark.proof
@pytest.mark.django_db
@pytest.mark.parametrize("is_registered", [pytest.param(False, marks=pytest.mark.smoke), True])
def test_every_page_and_verb_works(is_registered: bool) -> None:
    """With an e-mail address as login and UUID keys; with and without an admin page for users."""
    code = f"from tests.own_users.walk import main; main(is_registered={is_registered})"
    with empty_database() as url:
        environ = {**os.environ, **OURS, "DATABASE_URL": url}
        done = python("manage.py", "shell", "-v0", "-c", code, environ=environ)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["wrong"] == {}
    assert told["members"] == ["ann@example.com", "bob@example.com"]
    done = [tuple(entry) for entry in told["audit"]]
    assert {("pause", "ann@example.com"), ("resume", "ann@example.com")} <= set(done)
    assert told["import"] == 302 and told["api"] == 200
