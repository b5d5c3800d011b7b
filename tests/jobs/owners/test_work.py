"""jobs/owners/work.py: the work of owners now, from rows and from the fair queues."""

import redis

from fleet import OwnerState
from jobs.models import Owner
from jobs.owners.limits import limit_owner, pause_owner
from jobs.owners.work import work_of
from tests.jobs.scenes import admitted, living_worker, submitted


def test_what_waits_in_the_queue_is_seen(
    committed: None, acme: Owner, northwind: Owner, broker: redis.Redis
) -> None:
    """With its wait, and the share to which it is entitled: all, as nobody else has work."""
    first, *_ = submitted(acme, 3)
    admitted(living_worker(), first)
    found = work_of([acme, northwind])
    mine, other = found[acme.pk], found[northwind.pk]
    assert (mine.running, mine.queued, mine.held, mine.failed) == (1, 2, 0, 0)
    assert mine.state is OwnerState.ELIGIBLE and mine.oldest_wait_seconds is not None
    assert (mine.entitled, other.entitled) == (1.0, 0.0)
    assert other.state is OwnerState.IDLE and other.oldest_wait_seconds is None


def test_a_cap_that_is_reached_is_seen(acme: Owner) -> None:
    """By the rows of its active runs."""
    first, *_ = submitted(acme, 2)
    limit_owner(acme, max_running=1)
    assert work_of([acme])[acme.pk].state is not OwnerState.AT_CAP
    admitted(living_worker(), first)
    assert work_of([acme])[acme.pk].state is OwnerState.AT_CAP


def test_a_pause_is_seen_before_the_queues_learn_of_it(acme: Owner) -> None:
    """The row is the truth."""
    pause_owner(acme)
    assert work_of([acme])[acme.pk].state is OwnerState.PAUSED
