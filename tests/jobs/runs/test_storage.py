"""jobs/runs/storage.py: rows by COPY, as hostile as their texts may be."""

import pytest
from django.db import DatabaseError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.ids import new_ids
from jobs.core.sql import now
from jobs.models import Owner, Run
from jobs.runs.storage import NewRun, RunDefaults, store

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40)


@pytest.fixture
def shared(acme: Owner) -> RunDefaults:
    return RunDefaults(
        owner_id=acme.pk,
        owner="acme",
        task="tests.add",
        queue="jobs",
        priority=5,
        max_attempts=3,
        created_at=now(),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=st.binary(max_size=200), lock=texts, labels=st.dictionaries(texts, texts))
def test_what_is_stored_is_what_was_given(
    shared: RunDefaults, payload: bytes, lock: str, labels: dict[str, str]
) -> None:
    """Tabs, line ends, backslashes and the rest of Unicode mean nothing to the COPY."""
    [run_id] = new_ids(shared.created_at, 1)
    store([NewRun(id=run_id, payload=payload, lock_key=lock, labels=labels)], shared)
    run = Run.objects.get(id=run_id)
    assert (bytes(run.payload), run.lock_key, run.labels) == (payload, lock, labels)
    assert (run.token, run.attempt_count, run.blocked_by, run.error_type) == (0, 0, "", "")


def test_an_error_of_the_database_is_one_of_djangos(shared: RunDefaults) -> None:
    """Who catches those of `django.db` catches this one too."""
    [run_id] = new_ids(shared.created_at, 1)
    twice = [NewRun(id=run_id, payload=b"{}")] * 2
    with pytest.raises(DatabaseError):
        store(twice, shared)
