"""jobs/recurring/missed.py: what was not run is noted once, and found again."""

from jobs.models import Missed, Owner
from jobs.recurring.missed import record_missed
from jobs.schedules.misfire import MissedSpan
from tests.jobs.recurring.scenes import at, recurring


def test_noting_again_changes_nothing(acme: Owner) -> None:
    """One record for a job, a span and a reason; of a job that is gone there is none."""
    job, other = recurring(acme), recurring(acme)
    span = MissedSpan(at(0), at(4), 5, "outage")
    for _ in range(2):
        record_missed([(job.pk, span), (other.pk, span), (other.pk + 1, span)])
    record_missed([])
    assert sorted(Missed.objects.values_list("job", "owner", "count")) == [
        (job.pk, acme.pk, 5),
        (other.pk, acme.pk, 5),
    ]
