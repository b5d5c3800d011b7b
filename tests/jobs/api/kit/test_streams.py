"""jobs/api/kit/streams.py: parts are read behind the barrier of a request that has ended."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory

from jobs.api.kit import streams
from jobs.api.kit.problems import Problem
from jobs.api.kit.streams import Stream, open_streams, streamed
from jobs.core import barrier, sql
from jobs.models import Membership, Owner, Role, Run
from jobs.models.access import access_of
from jobs.owners.tokens import make_token, use_token
from tests.jobs.scenes import submitted


def asked(owner: Owner) -> Any:
    """Return a request of a token, as an operation gets it."""
    token = use_token(make_token("scene", scopes=["read"], owner=owner).secret)
    request: Any = RequestFactory().get("/")
    request.auth = access_of(token)
    return request


def counts(stream: Stream) -> Iterator[bytes]:
    for _ in range(2):
        yield b"%d " % stream.read(Run.objects.count)


def test_each_part_sees_the_callers_rows_only(acme: Owner, stranger: Owner) -> None:
    """Also without any filter; between the parts, the connection acts as the system again."""
    submitted(acme, 2)
    submitted(stranger, 5)
    request = asked(acme)
    answer: Any = streamed(request, counts, content_type="text/plain")
    barrier.lower()
    assert next(answer.streaming_content) == b"2 "
    assert Run.objects.count() == 7
    assert sql.query("SELECT current_user <> 'fairshift_tenant' AS is_system")[0]["is_system"]
    assert list(answer.streaming_content) == [b"2 "]
    assert open_streams.count == 0


@pytest.mark.parametrize("change", [{"is_active": False}, {"role": Role.OPERATOR}, {}])
def test_a_user_that_loses_a_role_gets_no_further_part(
    acme: Owner, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """One that is switched off, has another role, or is no member any more; within a second."""
    monkeypatch.setattr(streams, "TRUSTED_SECONDS", 0.0)
    user = User.objects.create_user("ada")
    member = Membership.objects.create(owner=acme, user=user, role=Role.VIEWER)
    request: Any = RequestFactory().get("/")
    request.auth = access_of(user)
    barrier.raise_for([acme.pk])
    answer: Any = streamed(request, counts, content_type="text/plain")
    barrier.lower()
    assert next(answer.streaming_content) == b"0 "
    if "role" in change:
        Membership.objects.update(**change)
    elif change:
        User.objects.update(**change)
    else:
        member.delete()
    assert list(answer.streaming_content) == []
    assert open_streams.count == 0


def test_a_process_sends_a_bounded_number_of_streams(acme: Owner, settings: Any) -> None:
    """The next caller is asked to come again; a stream that was never begun leaves its place."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_MAX_STREAMS": 1}
    request = asked(acme)
    answer = streamed(request, counts, content_type="text/plain")
    with pytest.raises(Problem) as refused:
        streamed(request, counts, content_type="text/plain")
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "5")
    barrier.lower()
    answer.close()
    answer.close()
    assert open_streams.count == 0
    streamed(request, counts, content_type="text/plain").close()
