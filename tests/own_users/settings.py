"""Fairshift's own project, with another model of users."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = ["tests.own_users", *INSTALLED_APPS]  # noqa: F405
AUTH_USER_MODEL = "own_users.Person"
