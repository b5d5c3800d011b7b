"""What each command does; each returns the exit status."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jobs.client.api import Api, UsageError, new_key
from jobs.client.output import (
    JOB_COLUMNS,
    RUN_COLUMNS,
    print_facts,
    print_json,
    print_table,
    progress,
    progress_text,
)
from jobs.client.terminal import say

BATCH: Final = 10_000
"""Most runs of one request, as the server's default."""
OPEN: Final = ("scheduled", "held", "queued", "admitted", "running", "cancelling", "retrying")
OPTIONS: Final = ("owner", "queue", "priority", "target", "lock", "max_attempts", "countdown")


class Exit(IntEnum):
    """Exit statuses."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_SUCCEEDED = 3
    AWAY = 4
    INTERRUPTED = 130


def submit(api: Api, given: Namespace) -> Exit:
    """Submit one run, or one for each line of a file."""
    options = {name: value for name in OPTIONS if (value := getattr(given, name)) is not None}
    options["labels"] = dict(_pair(label, ":") for label in given.label)
    waves = _waves(given)
    if given.each is None:
        if given.name or waves:
            raise UsageError("--name and --waves are for --each")
        body = {"task": given.task, "arguments": _arguments(given), **options}
        run = api.post("/runs", body, key=given.key or new_key())
        _shown(run, given, text=run["id"])
        return _watched(api, [("run", run["id"])], given) if given.watch else Exit.OK
    if given.arg or given.arguments is not None:
        raise UsageError("with --each, the lines of the file have the arguments")
    batches = list(_batches(given.each))
    if waves and len(batches) > 1:
        raise UsageError(f"--waves is for one submission, of at most {BATCH:,} lines")
    made = []
    for place, batch in enumerate(batches):
        body = {"task": given.task, "arguments": batch, "label": given.name, **options, **waves}
        key = f"{given.key}:{place}" if given.key else new_key()
        submission = api.post("/submissions", body, key=key)
        made.append(("submission", str(submission["id"])))
        counts = ", ".join(f"{count:,}" for count in submission.get("waves", ()))
        text = f"{submission['id']}  {submission['run_count']:,} runs"
        _shown(submission, given, text=f"{text} in waves of {counts}" if counts else text)
    return _watched(api, made, given) if given.watch else Exit.OK


def _waves(given: Namespace) -> dict[str, Any]:
    """Return the waves of a submit, as the API takes them; an empty mapping without waves."""
    names = ("stop_at", "between", "spread")
    found = {name: _number(value) for name in names if (value := getattr(given, name)) is not None}
    if given.waves is None:
        if found:
            raise UsageError("--stop-at, --between and --spread are for --waves")
        return {}
    sizes = [_number(part.strip()) for part in given.waves.split(",") if part.strip()]
    return {"waves": {"sizes": sizes, **found}}


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def runs(api: Api, given: Namespace) -> Exit:
    """List runs, newest first."""
    rows = api.pages("/runs", _query(given), most=given.limit)
    return _listed(rows, RUN_COLUMNS, given)


def run(api: Api, given: Namespace) -> Exit:
    """Show one run, with its moves if asked."""
    found = api.get(f"/runs/{given.id}")
    if found["state"] in OPEN:
        found["why"] = api.get(f"/runs/{given.id}/why")["why"]
    if given.timeline:
        found["timeline"] = api.get(f"/runs/{given.id}/timeline")
    if given.json:
        print_json(found)
        return Exit.OK
    timeline = found.pop("timeline", None)
    print_facts(found)
    if timeline is not None:
        print_table(timeline["moves"], ("at", "state", "cause"))
        _where(timeline)
    return Exit.OK


def move(api: Api, given: Namespace) -> Exit:
    """Cancel or retry runs by their ids, or all of a filter."""
    body: dict[str, Any] = {"reason": given.reason}
    if given.ids:
        if _query(given) or given.dry_run:
            raise UsageError("give ids, or filters; --dry-run is for filters")
        if given.arguments is not None:
            body["arguments"] = _object(given.arguments, "--arguments")
        for run_id in given.ids:
            moved = api.post(f"/runs/{run_id}/{given.command}", body, is_repeatable=False)
            _shown(moved, given, text=f"{moved['id']}  {moved['state']}")
        return Exit.OK
    wanted = _filter(given)
    if given.arguments is not None:
        raise UsageError("--arguments is for runs by their ids")
    if not wanted:
        raise UsageError("name runs by their ids, or by at least one filter")
    body |= {"filter": wanted, "dry_run": given.dry_run}
    total = Counter(matched=0, moved=0)
    while True:
        result = api.post(f"/runs/{given.command}", body)
        total.update(matched=result["matched"] - result["left"], moved=result["moved"])
        # What is left was not reached in the time of one request.
        if not result["left"] or not result["moved"]:
            break
    verb = "would be moved" if given.dry_run else f"of {total['matched']:,} moved"
    count = total["matched"] if given.dry_run else total["moved"]
    return _shown(dict(total, left=result["left"]), given, text=f"{count:,} {verb}")


def jobs(api: Api, given: Namespace) -> Exit:
    """List jobs."""
    return _listed(api.pages("/jobs", _query(given), most=given.limit), JOB_COLUMNS, given)


def watch(api: Api, given: Namespace) -> Exit:
    """Wait until runs and submissions have ended."""
    kinds = ["submission" if one.isdecimal() else "run" for one in given.ids]
    return _watched(api, list(zip(kinds, given.ids, strict=True)), given)


def export(api: Api, given: Namespace) -> Exit:
    """Write all runs of a filter to a file, or to the standard output."""
    query = [*_query(given), ("format", given.format)]
    query += [("with_arguments", "true")] if given.with_arguments else []
    parts = api.lines("/exports/runs", query)
    if given.output is None:
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return Exit.OK
    # Under its name only when it is whole.
    partial = Path(f"{given.output}.part")
    try:
        with partial.open("wb") as file:
            file.writelines(parts)
        partial.replace(given.output)
    except OSError as error:
        raise UsageError(f"{given.output}: {error.strerror}") from None
    return Exit.OK


def _watched(api: Api, wanted: Sequence[tuple[str, str]], given: Namespace) -> Exit:
    """Wait for the end of runs and submissions; NOT_SUCCEEDED unless all have succeeded."""
    sys.stdout.flush()
    until = None if given.timeout is None else time.monotonic() + given.timeout
    notes: dict[str, str] = {}
    states = {one: _states(api, *one, notes=notes) for one in wanted}
    with progress(sum(found.total() for found in states.values())) as show:
        while True:
            waiting = [one for one, found in states.items() if not set(found).isdisjoint(OPEN)]
            total = sum(states.values(), Counter())
            ended = total.total() - sum(total[state] for state in OPEN)
            show(ended, next(iter(notes.values()), "") if len(notes) == 1 else "")
            if not waiting or (until is not None and time.monotonic() > until):
                break
            time.sleep(given.every)
            states |= {one: _states(api, *one, notes=notes) for one in waiting}
    found = dict(sorted(total.items()))
    _shown(found, given, text=", ".join(f"{count:,} {state}" for state, count in found.items()))
    return Exit.OK if set(found) <= {"succeeded"} else Exit.NOT_SUCCEEDED


def _states(api: Api, kind: str, name: str, *, notes: dict[str, str]) -> Counter[str]:
    """Count a submission's runs by state, or the one run, whose progress is noted."""
    if kind == "run":
        run = api.get(f"/runs/{name}")
        # A server of an earlier version sends no progress.
        if run.get("progress"):
            notes[name] = progress_text(run["progress"])
        return Counter([run["state"]])
    return Counter(api.get(f"/submissions/{name}")["progress"]["states"])


def _query(given: Namespace) -> list[tuple[str, str]]:
    found = _filter(given).items()
    return [
        (name, str(one))
        for name, value in found
        for one in (value if isinstance(value, list) else [value])
    ]


def _filter(given: Namespace) -> dict[str, Any]:
    given_values = ((name, getattr(given, name)) for name in given.filters)
    return {name: value for name, value in given_values if value not in (None, [])}


def _arguments(given: Namespace) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if given.arguments is not None:
        arguments = _object(given.arguments, "--arguments")
    for text in given.arg:
        name, value = _pair(text, "=")
        try:
            arguments[name] = json.loads(value)
        except ValueError:
            arguments[name] = value
    return arguments


def _batches(path: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the objects of a file's lines, as many as one request takes."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}") from None
    # Not `splitlines`: a JSON string may contain U+2028.
    objects = [
        _object(line, f"{path}, line {number}")
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not objects:
        raise UsageError(f"{path} has no line with arguments")
    lines = iter(objects)
    while batch := list(islice(lines, BATCH)):
        yield batch


def _object(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{place}: is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{place}: is no JSON object of arguments by name")
    return value


def _where(timeline: Mapping[str, Any]) -> None:
    """Print where a run was, as its workers have answered."""
    for one in timeline.get("answers") or ():
        facts = ("attempt", "worker", "pid", "memory_bytes", "cpu_seconds", "problem")
        say("")
        print_facts({"answered_at": one["answered_at"], **{name: one[name] for name in facts}})
        for line in one["stack"].splitlines():
            say(line)
    if waiting := timeline.get("unanswered"):
        say(waiting)


def _pair(text: str, mark: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not name or not found:
        raise UsageError(f"{text!r} is not name{mark}value")
    return name, value


def _listed(rows: Iterator[Any], columns: tuple[str, ...], given: Namespace) -> Exit:
    if given.json:
        for row in rows:
            print_json(row)
    else:
        print_table(list(rows), columns)
    return Exit.OK


def _shown(value: Any, given: Namespace, *, text: str) -> Exit:
    if given.json:
        print_json(value)
    else:
        say(text)
    return Exit.OK
