"""Rules about service windows: nothing is admitted or begins outside what the scene agreed to.

When calendars were open is told by the scene, change by change; no code is shared with the project.
An admission counts by PostgreSQL's clock, a start by what its task wrote. While a change was being
committed, either state of the calendar may decide; at no other time, and by no tolerance.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.judge.log import TaskEvent
from tests.judge.rows import AdmittedRow
from tests.judge.verdict import Finding, Verdict

EVER = datetime.max.replace(tzinfo=UTC)
Span = tuple[datetime, datetime]


@dataclass(frozen=True, kw_only=True)
class Hours:
    """What one customer has agreed to, from a moment of a scene on: spans in order, apart.

    It may decide from `begins` (its commit is under way), and does so alone from `sure_from`.
    """

    spans: Sequence[Span]
    begins: datetime
    sure_from: datetime
    cut_off: timedelta = timedelta(0)

    def last_start(self, at: datetime, *, needed: timedelta) -> datetime | None:
        """Return until when a run may begin that is admitted then; None when it may not."""
        place = bisect_right(self.spans, at, key=lambda span: span[0]) - 1
        if place < 0 or at >= self.spans[place][1]:
            return None
        last = self.spans[place][1] - self.cut_off - needed
        return last if at <= last else None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A run: the owner whose hours it must keep, and how long its attempt may take."""

    owner: str
    needed: timedelta = timedelta(0)


def judge_windows(
    hours: Mapping[str, Sequence[Hours]],
    *,
    asked: Mapping[str, Asked],
    admissions: Iterable[AdmittedRow],
    starts: Iterable[TaskEvent],
    boot: datetime,
) -> Verdict:
    """Return which of these runs were admitted, or began, outside the hours of their owners.

    Hours are by owner, each change of them in order; `boot` is when the machine's monotonic clock,
    by which starts are read, was at 0.
    """
    lasts: dict[tuple[str, int], datetime] = {}
    outside: list[Finding] = []
    admitted = [row for row in admissions if row.run_id in asked]
    for row in admitted:
        run = asked[row.run_id]
        last = _last_start(hours[run.owner], row.at, needed=run.needed)
        if last is None:
            outside.append(Finding(row.run_id, f"admitted at {row.at}, {run.owner} was closed"))
        else:
            lasts[row.run_id, row.token] = last
    began = [event for event in starts if event.event == "start" and event.run in asked]
    late, figures = list(_late(began, lasts, boot)), _figures(hours, admitted)
    closed = list(_closed(began, hours, asked, boot))
    found = {"admitted_outside": outside, "started_late": late, "started_outside": closed}
    return Verdict(found=found, figures=figures | {"starts": len(began)})


def _last_start(hours: Sequence[Hours], at: datetime, *, needed: timedelta) -> datetime | None:
    found = [one.last_start(at, needed=needed) for one in _deciding(hours, at)]
    return max((last for last in found if last is not None), default=None)


def _deciding(hours: Sequence[Hours], at: datetime) -> Iterator[Hours]:
    for number, one in enumerate(hours):
        ends = hours[number + 1].sure_from if number + 1 < len(hours) else EVER
        if one.begins <= at < ends:
            yield one


def _late(
    starts: Iterable[TaskEvent], lasts: Mapping[tuple[str, int], datetime], boot: datetime
) -> Iterator[Finding]:
    """Find starts after the last moment that their admission allowed."""
    for event in starts:
        last = lasts.get((str(event.run), event.token or 0))
        began = _moment(event, boot)
        if last is not None and began > last:
            over = (began - last).total_seconds()
            yield Finding(str(event.run), f"began {over:.6f} s after {last}, pid {event.pid}")


def _closed(
    starts: Iterable[TaskEvent],
    hours: Mapping[str, Sequence[Hours]],
    asked: Mapping[str, Asked],
    boot: datetime,
) -> Iterator[Finding]:
    """Find starts in closed hours that were never changed: no row is read."""
    for event in starts:
        run = asked[str(event.run)]
        began = _moment(event, boot)
        if len(hours[run.owner]) == 1 and not _is_open(hours[run.owner][0], began):
            yield Finding(str(event.run), f"began at {began}, {run.owner} was closed")


def _is_open(hours: Hours, at: datetime) -> bool:
    return hours.last_start(at, needed=timedelta(0)) is not None


def _moment(event: TaskEvent, boot: datetime) -> datetime:
    """Return when a task wrote this: a process's wall clock may be wrong, this one is not."""
    return boot + timedelta(seconds=event.monotonic)


def _figures(
    hours: Mapping[str, Sequence[Hours]], admitted: Sequence[AdmittedRow]
) -> dict[str, int]:
    first = min((row.at for row in admitted), default=EVER)
    last = max((row.at for row in admitted), default=EVER)
    passed = [
        span
        for eras in hours.values()
        for span in eras[-1].spans
        if first < span[1] and span[0] < last
    ]
    return {
        "owners": len(hours),
        "changes": sum(len(eras) - 1 for eras in hours.values()),
        "openings": len(passed),
        "admissions": len(admitted),
    }
