"""Reading again: jobs that were written while the slots of their due times passed.

A tick cannot see a job whose transaction has not committed. So each round looks at the jobs that
have become visible since the round before, and triggers what was due in slots whose tick did not
see them. A transaction may take AGAIN_SECONDS; what one that takes longer makes due at its
beginning is missed.
"""

from __future__ import annotations

from typing import Any

from jobs import database
from jobs.conf import setting
from jobs.due import SLOTS, Due, is_due, rows_of
from jobs.ticking import CHUNK, make_due_runs, send_due_hints


@database.alone
def read_again() -> int:
    """Trigger what ticks could not see; return how many.

    Raises BrokerUnavailable while hints of jobs without history cannot be published: the round is
    then done again, and what it has made is made once.
    """
    found = database.run("again_since", {})
    if not found:
        return 0
    [round_] = found
    total = _trigger(unseen(round_)) if round_["any"] else 0
    database.query("UPDATE jobs_cursor SET again_seen = %s::pg_snapshot", [round_["seen"]])
    return total


def unseen(round_: dict[str, Any]) -> list[Due]:
    """Return the due times of changed jobs that lie in slots whose tick did not see the change."""
    end = round_["slot"]
    first = end - 2 * round(setting("AGAIN_SECONDS"))
    of_round = {"seen": round_["seen"], "before": round_["before"]}
    crons, zones, minutes = [], [], []
    for row in database.run("again_crons", of_round):
        for minute in range(first // SLOTS, (end - 1) // SLOTS + 1):
            if is_due(row["cron"], row["zone"], minute):
                crons.append(row["cron"])
                zones.append(row["zone"])
                minutes.append(minute)
    span = {"first_slot": first, "end_slot": end}
    matched = {"crons": crons, "zones": zones, "minutes": minutes}
    return rows_of("again_due", {**of_round, **span, **matched})


def _trigger(due: list[Due]) -> int:
    # Rows first: they do not wait for a broker that is away.
    total = sum(make_due_runs(due[at : at + CHUNK]) for at in range(0, len(due), CHUNK))
    return total + sum(send_due_hints(due[at : at + CHUNK]) for at in range(0, len(due), CHUNK))
