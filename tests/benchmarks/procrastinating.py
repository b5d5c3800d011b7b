"""Procrastinate, a durable queue in PostgreSQL: the baseline of single durable submits."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import procrastinate

from tests.flows.processes import database_url

QUEUE = "procrastinate"


@contextmanager
def deferring() -> Iterator[Callable[[int], None]]:
    """Give what defers jobs one by one, each in its own commit, over a pool of connections."""
    # Its line for each job would be measured, too: our submits write none.
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    app = procrastinate.App(connector=procrastinate.SyncPsycopgConnector(conninfo=database_url()))

    @app.task(name="bench.work", queue=QUEUE)
    def work(owner: str, number: int) -> None:
        """Never runs: only its submits are measured."""

    with app.open():
        app.schema_manager.apply_schema()

        def defer(count: int) -> None:
            for number in range(count):
                work.defer(owner="submitter", number=number)

        yield defer
