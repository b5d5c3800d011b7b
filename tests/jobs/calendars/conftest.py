"""The people of the scenes about windows."""

import pytest
from django.contrib.auth.models import User

from jobs.models import Owner
from tests.jobs.windows_world import approver


@pytest.fixture
def anna(acme: Owner) -> User:
    """Who asks."""
    return approver("anna", acme)


@pytest.fixture
def ben(acme: Owner) -> User:
    """Who approves."""
    return approver("ben", acme)
