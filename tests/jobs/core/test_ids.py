"""jobs/core/ids.py: ids sort by time, are unique, and of a due time there is one."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from jobs.core.ids import new_ids, scheduled_id, time_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
moments = st.timedeltas(timedelta(0), timedelta(days=365 * 8_000)).map(lambda span: EPOCH + span)
job_ids = st.integers(1, 2**63 - 1)


def whole(moment: datetime) -> datetime:
    """Cut a moment to the millisecond."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@given(moments, st.integers(0, 300))
def test_new_ids_rise_and_carry_their_moment(moment: datetime, count: int) -> None:
    """Sorted by id, a bulk keeps its order; each id is a UUIDv7 of the moment."""
    ids = list(new_ids(moment, count))
    assert len(ids) == count
    assert all(before < after for before, after in pairwise(ids))
    assert all(run_id.version == 7 and time_of(run_id) == whole(moment) for run_id in ids)


@given(job_ids, moments, st.text(max_size=20))
def test_a_due_time_has_one_id(job_id: int, due_at: datetime, salt: str) -> None:
    """Two schedulers, wherever they stand, make the same UUIDv8 for a job and a due time."""
    run_id = scheduled_id(job_id, due_at, salt=salt)
    elsewhere = due_at.astimezone(ZoneInfo("Asia/Kathmandu"))
    assert run_id == scheduled_id(job_id, elsewhere, salt=salt)
    assert (run_id.version, time_of(run_id)) == (8, whole(due_at))


@given(job_ids, moments)
def test_another_job_time_or_backfill_has_another_id(job_id: int, due_at: datetime) -> None:
    """What is not the same run does not deduplicate."""
    ids = {
        scheduled_id(job_id, due_at),
        scheduled_id(job_id + 1, due_at),
        scheduled_id(job_id, due_at + timedelta(minutes=1)),
        scheduled_id(job_id, due_at, salt="backfill 7"),
    }
    assert len(ids) == 4
