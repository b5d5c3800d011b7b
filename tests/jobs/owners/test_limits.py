"""jobs/owners/limits.py: a paused owner's queued runs wait, and go on by themselves."""

from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.core.errors import OptionError
from jobs.models import Owner
from jobs.owners.limits import pause_owner


@pytest.mark.parametrize(
    ("bad", "option"),
    [
        ({"reason": "x" * 501}, "reason: is text of at most 500 characters"),
        ({"reason": "nul \x00"}, "reason: "),
        ({"until": datetime(2030, 1, 1)}, "until: is a datetime with a time zone"),  # noqa: DTZ001
        ({"until": "2030-01-01"}, "until: is a datetime with a time zone"),
        ({"until": datetime(2020, 1, 1, tzinfo=UTC)}, "until: has passed already"),
    ],
)
def test_a_pause_that_cannot_be_kept_is_refused(
    acme: Owner, bad: dict[str, Any], option: str
) -> None:
    """By the name of what is wrong; the owner goes on."""
    with pytest.raises(OptionError, match=option):
        pause_owner(acme, **bad)
    assert not Owner.objects.paused().exists()
