"""Lines of runs' logs, as workers report them."""

import logging
from uuid import UUID

from fleet import Admission, Kind, LogChunk
from jobs.catalog.run_log.lines import Line, encoded
from jobs.core.crypto import Place, log_field, seal
from jobs.models import Run
from jobs.runs.sealed_reports import write_logs
from tests.jobs.scenes import admitted, living_worker, recorded, told


def chunk(at: Admission, *texts: str, first: int = 1, level: int = logging.INFO) -> LogChunk:
    """Return lines of an attempt of acme as a chunk, one a second; the first is of its start."""
    lines = [Line(1_767_225_600 + n, level, "shop", text) for n, text in enumerate(texts)]
    place = Place(at.context["owner"], UUID(at.run_id))
    sealed = seal(encoded(lines), field=log_field(at.token, first), place=place)
    return LogChunk(first, len(lines), lines[0].at, sealed.key, sealed.data)


def logging_run(run: Run, *texts: str) -> Admission:
    """Start a run that has logged these texts, and has not ended."""
    at = admitted(living_worker(), run)
    recorded(at, Kind.STARTED)
    say(at, chunk(at, *texts))
    return at


def say(at: Admission, *chunks: LogChunk) -> None:
    """Write chunks of a running attempt."""
    write_logs([told(at, Kind.STARTED, log=chunks)])
