"""jobs/windows/approval.py: which occurrences somebody has agreed to, by all that was said."""

from datetime import UTC, datetime, timedelta

from jobs.windows import DecisionFact, Effect, Entry, approved_spans, start_of

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
DAILY = Entry(Effect.WINDOW, datetime(2026, 11, 20, 12), DAY / 24, "UTC", rule="FREQ=DAILY")


def days(*said: DecisionFact) -> list[int]:
    """Return which of the next ten days, of which each starts an occurrence, are agreed to."""
    spans = approved_spans(said)
    return [
        day for day in range(10) if any(one.start <= NOON + day * DAY < one.end for one in spans)
    ]


def on(day: int, *, is_approved: bool = True, until: int | None = None) -> DecisionFact:
    """Return a decision on the occurrence of one day."""
    return DecisionFact(
        is_approved, NOON + day * DAY, None if until is None else NOON + until * DAY
    )


def test_all_and_one_by_one() -> None:
    """The newest decision on an occurrence counts, and one on all is one on each.

    Without a decision nothing is agreed to.
    """
    assert days() == []
    every = list(range(10))
    assert days(DecisionFact(True)) == every
    assert days(DecisionFact(True), on(3, is_approved=False)) == [day for day in every if day != 3]
    assert days(DecisionFact(True), on(3, is_approved=False), on(3)) == every
    assert days(on(3), on(5)) == [3, 5]
    assert days(on(3), DecisionFact(False)) == []
    assert days(on(3, is_approved=False), DecisionFact(True)) == every


def test_an_approval_that_expires_counts_for_what_starts_before() -> None:
    """To the moment; an occurrence is not agreed to by one that has expired when it starts."""
    assert days(DecisionFact(True, expires_at=NOON + 2 * DAY)) == [0, 1]
    assert days(on(3, until=4), on(5, until=5)) == [3]


def test_the_start_of_an_occurrence_or_the_next_one() -> None:
    """One that is valid only in part may be named by where that begins, too."""
    assert start_of(DAILY, NOON + DAY) == (NOON + DAY, None)
    assert start_of(DAILY, NOON + DAY / 2) == (None, NOON + DAY)
    late = Entry(
        *(Effect.WINDOW, datetime(2026, 11, 20, 12), DAY / 24, "UTC"),
        valid_from=NOON + DAY / 48,
    )
    assert start_of(late, NOON) == start_of(late, NOON + DAY / 48) == (NOON, None)
    assert start_of(late, NOON + DAY) == (None, None)
    yearly = Entry(
        *(Effect.WINDOW, datetime(2026, 11, 20, 12), DAY / 24, "UTC"), rule="FREQ=MONTHLY"
    )
    assert start_of(yearly, NOON + DAY) == (None, datetime(2026, 12, 20, 12, tzinfo=UTC))
