"""The whole log of a run, for tests."""

from collections.abc import Iterator

from jobs.models import Run
from jobs.runs.reads.log import START, LogLine, LogPage, Wanted, page_of


def lines_of(run: Run, *, wanted: Wanted | None = None) -> Iterator[LogLine]:
    """Yield all lines of a run's log, oldest first."""
    page = LogPage((), START, has_more=True)
    while page.has_more:
        page = page_of(run, after=page.after, wanted=wanted, most=1_000)
        yield from page.lines
