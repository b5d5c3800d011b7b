"""jobs/recurring/missed.py: what was not run is noted once, and found again."""

from jobs.models import Missed, Owner
from jobs.recurring.missed import missed_spans_of, record_missed
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


def test_what_touches_a_span_is_found(acme: Owner) -> None:
    """Both ends of a record count; of the span that is asked for, only the first."""
    job = recurring(acme)
    record_missed([(job.pk, MissedSpan(at(2), at(4), 3, "cap"))])
    found = {job.pk: [(at(2), at(4))]}
    assert missed_spans_of([job.pk], start=at(4), end=at(9)) == found
    assert missed_spans_of([job.pk], start=at(0), end=at(2, seconds=1)) == found
    assert missed_spans_of([job.pk], start=at(0), end=at(2)) == {}
    assert missed_spans_of([job.pk], start=at(5), end=at(9)) == {}
    assert missed_spans_of([job.pk + 1], start=at(0), end=at(9)) == {}
