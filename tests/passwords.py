"""Passwords of tests that start no web process: another process could not check them."""

from collections.abc import Iterator

import pytest
from django.test import override_settings


@pytest.fixture(scope="package", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Hash passwords with MD5: a hash as in production takes 0.4 s of CPU time."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield
