"""python -m tests.benchmarks [WHAT...] [--json FILE] [--rounds N] [--quick | --large]."""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import django

# First of all: the settings are read with servers of the tests' own, whose data is lost.
import tests.own_servers  # noqa: F401


def main() -> None:
    """Measure, print one table, write JSON; the exit status is 1 when a member gave no figures."""
    django.setup()
    from rich.console import Console

    from tests.benchmarks.members import MEMBERS, measure
    from tests.benchmarks.place import world_of
    from tests.benchmarks.report import conditions, print_conditions, print_rows

    given = _arguments(MEMBERS)
    console = Console(width=max(150, Console().width) if not sys.stdout.isatty() else None)
    began = time.monotonic()
    rows, errors = {}, {}
    with world_of(rounds=given.rounds, is_quick=given.quick, is_large=given.large) as world:
        found = conditions(world)
        print_conditions(found, console)
        for member in given.what or MEMBERS:
            started = time.monotonic()
            try:
                rows[member] = measure(member, world)
            except Exception as error:
                # The others are still worth their figures.
                errors[member] = f"{type(error).__name__}: {error}"
            took = time.monotonic() - started
            print(f"{member}: {took:.0f} s {errors.get(member, '')}", file=sys.stderr, flush=True)
    print_rows(rows, console)
    for member, text in errors.items():
        console.print(f"{member} gave no figures: {text}", markup=False)
    if given.json:
        written = {
            "conditions": found,
            "rows": [row.as_json(member) for member, part in rows.items() for row in part],
            "errors": errors,
            "seconds": time.monotonic() - began,
        }
        text = json.dumps(written, indent=1, default=str)
        # The samples of a figure are one line, so that a person can read them.
        lines = re.sub(r"\[[^][{}]*\]", lambda samples: " ".join(samples[0].split()), text)
        Path(given.json).write_text(f"{lines}\n")
    sys.exit(1 if errors else 0)


def _arguments(members: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(members)}")
    parser.add_argument("--json", metavar="FILE", help="write everything, single rounds too")
    parser.add_argument("--rounds", type=int, metavar="N", help="of which the median counts")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small, one round: a smoke test")
    size.add_argument("--large", action="store_true", help="pages, api: ten times as many rows")
    given = parser.parse_args()
    for unknown in set(given.what) - set(members):
        parser.error(f"there is no member {unknown!r}; there are: {', '.join(members)}")
    given.rounds = given.rounds or (1 if given.quick else 5)
    if given.rounds < 1:
        parser.error(f"--rounds is {given.rounds}, but must be 1 or more")
    return given


if __name__ == "__main__":
    main()
