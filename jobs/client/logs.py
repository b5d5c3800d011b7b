"""`fairshift runs logs ID`: what the task of a run has logged and printed."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.client.api import Api
from jobs.client.arguments import pause
from jobs.client.commands import OPEN, Exit
from jobs.client.output import print_json
from jobs.client.terminal import say

WORDS = ["runs", "logs"]
"""The words with which the command begins."""


def logs(api: Api, words: Sequence[str]) -> Exit:
    """Print the lines of a run; with --follow until it has ended."""
    given = _parser().parse_args(words)
    names = ("attempt", "level", "text")
    query = [(name, str(value)) for name in names if (value := getattr(given, name)) is not None]
    cursor = ""
    while True:
        # The state first: the last lines are written before the end.
        is_open = given.follow and api.get(f"/runs/{given.id}")["state"] in OPEN
        page = {"has_more": True}
        while page["has_more"]:
            at = [("limit", "500"), ("cursor", cursor)]
            page = api.get(f"/runs/{given.id}/log", [*query, *at])
            cursor = page["next"]
            for line in page["items"]:
                _print(line, given)
        if not is_open:
            return Exit.OK
        time.sleep(given.every)


def _print(line: Mapping[str, Any], given: Namespace) -> None:
    if given.json:
        print_json(line)
        return
    if line["left_out"]:
        say(f"… {line['left_out']:,} lines left out …")
    first, *others = line["text"].split("\n")
    say(f"{line['at']} {line['level']:8} {line['logger']}: {first}", flush=not others)
    for more in others:
        say(more, flush=more is others[-1])


def _parser() -> ArgumentParser:
    made = ArgumentParser(prog="fairshift runs logs", description=logs.__doc__)
    made.add_argument("id", help="the run's id")
    made.add_argument("--follow", action="store_true", help="until the run has ended")
    made.add_argument("--attempt", type=int, metavar="NUMBER", help="of one attempt")
    made.add_argument("--level", help="of this level and above, such as WARNING")
    made.add_argument("--text", help="with this text")
    made.add_argument("--json", action="store_true", help="print JSON, a line each")
    made.add_argument("--every", type=pause, default=1.0, metavar="SECONDS", help="between looks")
    return made
