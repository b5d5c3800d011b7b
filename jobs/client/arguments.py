"""The command line of `fairshift`."""

from __future__ import annotations

import json
import math
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from jobs.client import commands

EPILOG: Final = """
An action on rows: fairshift <nouns> <action> <key> …, such as `fairshift owners pause acme --reason
stocktaking`. `fairshift owners -h` lists those that the server has for owners.

FAIRSHIFT_URL and FAIRSHIFT_TOKEN are the server's address and an API token.

exit statuses: 0 done; 1 the server refused; 2 wrong usage; 3 watched runs have not all succeeded;
4 the server is away; 130 interrupted
"""

LEAST_PAUSE_SECONDS: Final = 0.1


def parser() -> ArgumentParser:
    """Return the parser of the command line; `run` of its result is the command."""
    made = ArgumentParser(
        prog="fairshift",
        description="Submit runs, watch them, cancel and retry them.",
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    verbs = made.add_subparsers(dest="command", required=True, metavar="command")
    _submit(_verb(verbs, "submit", commands.submit, "submit one run, or one for each line"))
    listed = _verb(verbs, "runs", commands.runs, "list runs, newest first")
    _filters(listed, "runs")
    _limit(listed)
    one = _verb(verbs, "run", commands.run, "show one run")
    one.add_argument("id")
    one.add_argument("--timeline", action="store_true", help="with its moves")
    for name in ("cancel", "retry"):
        moved = _verb(verbs, name, commands.move, f"{name} runs by their ids, or of a filter")
        moved.add_argument("ids", nargs="*", metavar="id")
        moved.add_argument("--reason", default="", help="for the history and the audit")
        moved.set_defaults(arguments=None)
        if name == "retry":
            moved.add_argument("--arguments", metavar="JSON", help="others, all by name")
        moved.add_argument("--dry-run", action="store_true", help="count only")
        _filters(moved, "runs")
    found = _verb(verbs, "jobs", commands.jobs, "list jobs")
    _filters(found, "jobs")
    _limit(found)
    watched = _verb(verbs, "watch", commands.watch, "wait until runs or submissions have ended")
    watched.add_argument("ids", nargs="+", metavar="id", help="a run's id, a submission's number")
    _watching(watched)
    exported = _verb(verbs, "export", commands.export, "write all runs of a filter")
    exported.add_argument("--format", choices=("ndjson", "csv"), default="ndjson")
    exported.add_argument("--with-arguments", action="store_true", help="and results")
    exported.add_argument("--output", metavar="FILE", help="default: the standard output")
    _filters(exported, "runs")
    return made


def _verb(verbs: Any, name: str, run: Any, text: str) -> ArgumentParser:
    made: ArgumentParser = verbs.add_parser(name, help=text, description=text)
    made.set_defaults(run=run)
    made.add_argument("--json", action="store_true", help="print JSON, a value a line")
    return made


def _submit(verb: ArgumentParser) -> None:
    verb.add_argument("task", help="the task's full name")
    verb.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help="JSON or text"
    )
    verb.add_argument("--arguments", metavar="JSON", help="all arguments, by name")
    verb.add_argument(
        "--each", metavar="FILE", help="a run for each line, a JSON object; - is stdin"
    )
    verb.add_argument("--name", default="", help="of the submission, with --each")
    verb.add_argument("--waves", metavar="SIZES", help='with --each: such as "1, 10%%, 100%%"')
    verb.add_argument("--stop-at", metavar="LIMIT", help="failed runs of a wave: 5, or 5%%")
    verb.add_argument("--between", metavar="WAIT", help="between waves: seconds, or approval")
    verb.add_argument("--spread", metavar="LABEL", help="of targets: one of each value first")
    verb.add_argument("--key", default="", help="idempotency key: repeated, it makes nothing twice")
    verb.add_argument("--label", action="append", default=[], metavar="NAME:VALUE")
    for name in ("owner", "queue", "target", "lock"):
        verb.add_argument(f"--{name}")
    verb.add_argument("--priority", type=int, help="0 to 9, higher first")
    verb.add_argument("--max-attempts", type=int)
    verb.add_argument("--countdown", type=float, metavar="SECONDS", help="until the start")
    verb.add_argument("--watch", action="store_true", help="wait until all have ended")
    _watching(verb)


def _watching(verb: ArgumentParser) -> None:
    verb.add_argument("--every", type=pause, default=2.0, metavar="SECONDS", help="between looks")
    verb.add_argument("--timeout", type=float, metavar="SECONDS", help="wait no longer")


def pause(text: str) -> float:
    """Return a pause that a server can bear."""
    seconds = float(text)
    if not LEAST_PAUSE_SECONDS <= seconds < math.inf:
        raise ArgumentTypeError(f"is at least {LEAST_PAUSE_SECONDS:g}")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ArgumentTypeError("is at least 1")
    return count


def _limit(verb: ArgumentParser) -> None:
    verb.add_argument("--limit", type=_count, default=50, help="most rows")


def _filters(verb: ArgumentParser, noun: str) -> None:
    """Add the filters that the API's list has; `make docs` writes the file."""
    found = json.loads(Path(__file__).with_name("filters.json").read_text(encoding="utf-8"))[noun]
    for one in found:
        own: dict[str, Any] = {"help": one["help"].replace("%", "%%"), "metavar": "VALUE"}
        if one["kind"] == "array":
            own |= {"action": "append", "default": []}
        verb.add_argument(f"--{one['name']}", type=int if one["kind"] == "integer" else str, **own)
    verb.set_defaults(filters=[one["name"] for one in found])


def _version() -> str:
    try:
        return version("fairshift")
    except PackageNotFoundError:
        return "(a checkout of the source)"
