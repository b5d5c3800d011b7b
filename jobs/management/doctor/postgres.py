"""PostgreSQL and its rows, on a connection of this thread whose waits are limited."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
from django.core.checks import CheckMessage, Error, Info
from django.core.checks import Warning as Caution
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from fleet import counted
from jobs.checks import database
from jobs.checks.pooling import pooling_mode
from jobs.core import sql
from jobs.management.doctor.disk import space
from jobs.management.doctor.part import Look, Unreachable
from jobs.system.state import CLOCK_SECONDS

CONNECT_SECONDS: Final = 2
"""The shortest wait that libpq knows."""
STATEMENT_PART: Final = 0.4
"""Of all seconds, those that one statement may take."""
LOCAL_ADDRESSES: Final = (None, "127.0.0.1", "::1")
"""Those of a server on this machine; None: a unix socket."""
SAID_BY_RUNNING: Final = tuple(f"fairshift.W{number}" for number in (108, 110, 111, 115, 116))
"""System checks of workers and beat, which the overview's verdict reports as well."""

Parameters = dict[str, Any]
"""Of a connection, for psycopg."""


def reach(seconds: float) -> Parameters:
    """Connect, and have an answer to `SELECT 1`; raise Unreachable.

    Returns with what this thread's connection is opened from now on.
    """
    if connection.vendor != "postgresql":
        return {}  # the system checks say so
    patience = max(CONNECT_SECONDS, int(seconds))
    connection.settings_dict = {
        **connection.settings_dict,
        "OPTIONS": {**connection.settings_dict.get("OPTIONS", {}), "connect_timeout": patience},
    }
    parameters = connection.get_connection_params() | {"autocommit": True}
    try:
        with closing(psycopg.connect(**parameters)) as opened:
            opened.execute("SELECT 1")
    except psycopg.Error as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Unreachable(reason) from error
    return parameters


def pooling(parameters: Parameters, seconds: float) -> Iterator[CheckMessage]:
    """Report a pooler that keeps no session."""
    if connection.vendor != "postgresql":
        return
    mode = pooling_mode(partial(psycopg.connect, **parameters))
    if mode == "transaction" and not sql.keeps_session(connection):
        yield Info(
            "The pooler before PostgreSQL shares connections between transactions: these settings"
            " are for web processes only.",
            hint="Workers, beat and migrate need DATABASES without this pooler"
            " (docs/operate/scale.md#pgbouncer): run doctor with theirs, too.",
            id="fairshift.D110",
        )
    elif mode:
        yield Error(
            f"The pooler before PostgreSQL shares connections between {mode}s: locks, prepared"
            " statements and settings of a session are lost, or another client gets them.",
            hint="Web processes: set pool_mode = transaction in PgBouncer, and"
            " DISABLE_SERVER_SIDE_CURSORS in DATABASES (DATABASE_TRANSACTION_POOLER in Fairshift's"
            " own project). Workers, beat and migrate: connect to PostgreSQL itself, or to a pooler"
            " with pool_mode = session.",
            id="fairshift.D101",
        )
    else:
        # Behind such a pooler it would stay with another client.
        sql.query(f"SET statement_timeout = {seconds * STATEMENT_PART * 1_000:.0f}")


def checked() -> Iterator[CheckMessage]:
    """Run the system checks of PostgreSQL and of Fairshift's rows."""
    for message in database.deployed_problems():
        if message.id not in SAID_BY_RUNNING:
            yield message


def writable() -> Iterator[CheckMessage]:
    """Report a server, or a user, that takes no writes."""
    [row] = sql.query(
        "SELECT pg_is_in_recovery() AS is_standby,"
        " current_setting('default_transaction_read_only') = 'on' AS is_read_only"
    )
    if row["is_standby"] or row["is_read_only"]:
        what = "is a standby" if row["is_standby"] else "is read-only for this user"
        yield Error(
            f"PostgreSQL {what}: nothing can be submitted, run or recorded.",
            hint="Correct DATABASES (DATABASE_URL in Fairshift's own project) to the primary"
            " server, promote this one, or set default_transaction_read_only to off.",
            id="fairshift.D102",
        )


def clock() -> Iterator[CheckMessage]:
    """Report a clock of this machine that differs from PostgreSQL's."""
    began_at = time.time()
    [row] = sql.query("SELECT extract(epoch FROM clock_timestamp())::float8 AS at")
    ahead = (began_at + time.time()) / 2 - row["at"]
    if abs(ahead) > CLOCK_SECONDS:
        yield Caution(
            f"The clock of this machine is {described(ahead)} PostgreSQL's. PostgreSQL's clock"
            " decides; times in logs, and how long a token or a login counts, are wrong.",
            hint="Synchronize the clocks of all machines, for example with chrony.",
            id="fairshift.D103",
        )


def described(ahead: float) -> str:
    """Return a difference of clocks in words."""
    return f"{abs(ahead):,.1f} s {'ahead of' if ahead > 0 else 'behind'}"


def partitions() -> Iterator[CheckMessage]:
    """Report days without a partition that later days have."""
    [row] = sql.query("SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS today")
    found = sql.query(
        "SELECT relname AS name FROM pg_class WHERE relkind = 'r'"
        " AND relname ~ '^jobs_(run|attempt|log)_[0-9]{8}$'"
    )
    names = {one["name"] for one in found}
    days = [datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC).date() for name in names]
    last = max(days, default=row["today"])
    missing = [
        name
        for number in range((last - row["today"]).days + 1)
        for table in ("jobs_run", "jobs_attempt", "jobs_log")
        if (name := f"{table}_{row['today'] + timedelta(days=number):%Y%m%d}") not in names
    ]
    if missing:
        yield Error(
            f"{counted(len(missing), 'partition')} missing, the first is {missing[0]}: its rows go"
            " to the default partition, where statements are slow.",
            hint="See why fairshift.system.make_partitions does not run; when it does, it makes"
            " them and moves the rows.",
            id="fairshift.D104",
        )


def migrations() -> Iterator[CheckMessage]:
    """Report a database that a newer version has migrated."""
    loader = MigrationLoader(connection)
    known = {key for key in loader.disk_migrations if key[0] == "jobs"}
    replaced = {key for one in loader.replacements.values() for key in one.replaces}
    newer = sorted(
        name
        for app, name in loader.applied_migrations
        if app == "jobs" and (app, name) not in known | replaced
    )
    if newer:
        yield Caution(
            f"The database has {counted(len(newer), 'migration')} that this code does not know,"
            f" such as {newer[-1]}: a newer version has migrated it.",
            hint="Install that version here, too. During an upgrade both may run side by side"
            " (docs/operate/upgrades.md).",
            id="fairshift.D105",
        )


def ages_of_transactions() -> Iterator[CheckMessage]:
    """Note that this user does not see how old transactions of others are."""
    [row] = sql.query(
        "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all,"
        " coalesce(string_agg(DISTINCT usename, ', '), '') AS others FROM pg_stat_activity"
        " WHERE datname = current_database()"
        " AND NOT pg_has_role(current_user, usesysid, 'USAGE')"
    )
    if row["others"] and not row["sees_all"]:
        yield Info(
            f"Not looked at: how old transactions of other users of PostgreSQL are"
            f" ({row['others']}). They are reported only by their age in transactions.",
            hint="To see their age: GRANT pg_read_all_stats TO the user of this process.",
            id="fairshift.D109",
        )


def data_disk() -> Iterator[CheckMessage]:
    """Report a disk of PostgreSQL's data that is nearly full, if it is one of this machine."""
    [row] = sql.query("SELECT host(inet_server_addr()) AS address")
    if row["address"] not in LOCAL_ADDRESSES:
        return
    try:
        [row] = sql.query("SHOW data_directory")
    except DatabaseError:
        return  # the user may not know it
    yield from space("PostgreSQL's data", Path(row["data_directory"]))


ROWS: Final[tuple[Look, ...]] = (
    writable,
    clock,
    partitions,
    migrations,
    ages_of_transactions,
    data_disk,
)
"""For a database that is migrated."""
