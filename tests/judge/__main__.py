"""`python -m tests.judge --log F --submits G`: print the verdict; exit 1 when it is bad."""

import argparse
import os
import sys

from tests.judge import judge, read_submit_events, read_task_events
from tests.judge.sqlreader import read_rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--log", required=True, help="file that the tasks appended to")
    parser.add_argument("--submits", required=True, help="file that the submitters appended to")
    parser.add_argument(
        "--database-url",
        default=os.environ.get("DATABASE_URL"),
        help="PostgreSQL to read the rows from (default: DATABASE_URL)",
    )
    chosen = parser.parse_args()
    if not chosen.database_url:
        parser.error("no database: set DATABASE_URL or give --database-url")
    runs, attempts = read_rows(chosen.database_url)
    verdict = judge(
        task_events=read_task_events(chosen.log),
        submit_events=read_submit_events(chosen.submits),
        runs=runs,
        attempts=attempts,
    )
    print(verdict.report())
    return 0 if verdict.ok else 1


if __name__ == "__main__":
    sys.exit(main())
