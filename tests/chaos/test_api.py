"""Requests from the OpenAPI document, as four callers: `make chaos WHAT=api`, with REQUESTS."""

from math import ceil

import pytest

from jobs.models import Owner
from jobs.owners.tokens import make_token
from tests.chaos.figures import amount
from tests.jobs.api.conftest import ALL, _own_limits  # noqa: F401  fixtures
from tests.jobs.api.judging import judge
from tests.jobs.api.matrix.operations import OPERATIONS
from tests.jobs.conftest import (  # noqa: F401  fixtures
    _real_commits,
    acme,
    broker,
    committed,
    db,
    django_db_setup,
    northwind,
)
from tests.jobs.scenes import submitted

REQUESTS = amount("REQUESTS", 20_000)


@pytest.mark.chaos
def test_api(committed: None, acme: Owner, northwind: Owner) -> None:  # noqa: F811
    """No fault of the server, and no answer that the document does not describe."""
    callers: list[tuple[Owner, tuple[str, ...]] | None] = [
        (acme, ALL),
        (northwind, ALL),
        (acme, ("read",)),
        None,
    ]
    examples = ceil(REQUESTS / len(callers) / len(OPERATIONS))
    calls = 0
    for caller in callers:
        headers = {}
        if caller is not None:
            owner, scopes = caller
            submitted(owner, 20)
            secret = make_token("judge", scopes=scopes, owner=owner).secret
            headers["Authorization"] = f"Bearer {secret}"
        calls += judge(headers, examples=examples)
    print(f"{calls:,} requests judged")
