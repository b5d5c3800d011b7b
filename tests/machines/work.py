"""What an installation on several machines is given to do, and the judge of it."""

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.flows.recurring import Recurring, job_of
from tests.flows.windowed import Windowed
from tests.judge import Verdict, read_submit_events, read_task_events
from tests.machines.caller import OWNERS
from tests.machines.installation import ROOT, Installation
from tests.waiting import wait_for

WINDOWED: Final = 6
"""Owners whose runs start in windows alone."""
OPEN_SECONDS: Final = 10
SHUT_SECONDS: Final = 5


class Work:
    """Submits over HTTP, windows, and recurring jobs, until an end."""

    def __init__(self, installation: Installation, *, seconds: float, late: float) -> None:
        """Submits last for `seconds`, and the runs end within `late` seconds more."""
        self.installation = installation
        here = installation.machines["caller"]
        self._asked = subprocess.Popen(
            here.enter(sys.executable, "-m", "tests.chaos.asked", os.devnull),
            env={**os.environ, **installation.environment},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._caller: subprocess.Popen[str] | None = None
        url = installation.primary.url
        self.windowed = Windowed(lambda act, facts: self._ask("calendar", act=act, facts=facts))
        self.recurring = Recurring(url, installation.folder, installation.tasks.path)
        self._agree(seconds + late)
        self._make_jobs(seconds)
        self._asked.kill()
        self._asked.wait()

    def _ask(self, do: str, **facts: Any) -> dict[str, Any]:
        assert self._asked.stdin is not None and self._asked.stdout is not None
        print(json.dumps({"do": do, **facts}), file=self._asked.stdin, flush=True)
        return dict(json.loads(self._asked.stdout.readline()))

    def _agree(self, seconds: float) -> None:
        for number in range(WINDOWED):
            first = datetime.now(UTC) + timedelta(seconds=2 + 5 * number)
            count = math.ceil(seconds / (OPEN_SECONDS + SHUT_SECONDS))
            self.windowed.agree(
                f"owner-{number}",
                first=first,
                count=count,
                seconds=OPEN_SECONDS,
                shut_seconds=SHUT_SECONDS,
            )

    def _make_jobs(self, seconds: float) -> None:
        """Have recurring jobs, each of whose due times is to run."""
        before = self.recurring.moment()
        self.ends_at = before + timedelta(seconds=seconds)
        policy = {"misfire": "all", "misfire_cap": 1000, "end_at": self.ends_at.isoformat()}
        policy |= {"task": "machines.work", "arguments": {"seconds": 0.05}}
        jobs = [job_of(f"every-{n}", interval_minutes=n % 2 + 1, **policy) for n in range(10)]
        jobs += [job_of(f"cron-{n}", cron="* * * * *", **policy) for n in range(10)]
        self._ask("upsert", jobs=jobs)
        self.recurring.made(jobs, before=before, ends_at=self.ends_at)

    def begin(self, runs: int, *, seconds: float, chance: random.Random) -> None:
        """Have the caller submit these runs, spread over so many seconds."""
        at = self.installation
        log, url = str(at.folder / "submits.log"), f"http://{at.machines['web'].address}:8000"
        given = [log, url, at.token, str(runs), str(runs / seconds), str(chance.randrange(10**6))]
        self._errors = at.folder / "caller.log"
        self._caller = subprocess.Popen(
            at.machines["caller"].enter(sys.executable, "-m", "tests.machines.caller", *given),
            env={**os.environ, **at.environment},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("wb"),
            text=True,
        )

    def submitted(self, *, seconds: float) -> dict[str, int]:
        """Wait until the caller has an answer for each run; return its figures."""
        assert self._caller is not None
        caller = self._caller

        def has_ended() -> bool:
            self.installation.watch()
            return caller.poll() is not None

        wait_for(has_ended, seconds=seconds, what="the caller")
        assert caller.stdout is not None
        assert caller.returncode == 0, self._errors.read_text()[-3000:]
        return dict(json.loads(caller.stdout.read()))

    def verdicts(self) -> Sequence[Verdict]:
        """Have the judges look at logs and rows; a bad verdict fails."""
        at = self.installation
        events = read_submit_events(at.folder / "submits.log")
        for event in events:
            owner = f"owner-{int(event.key.rpartition('-')[2]) % OWNERS}"
            if event.event == "ok" and owner in self.windowed.hours:
                self.windowed.submitted(owner, event.ids)
        outside = self.windowed.verdict(at.primary.url, at.tasks.path)
        self.recurring.url = at.primary.url
        return [outside, self.recurring.verdict()]

    def starts(self) -> list[Any]:
        """Return the starts of bodies by the tasks' own log."""
        return [
            one for one in read_task_events(self.installation.tasks.path) if one.event == "start"
        ]

    def close(self) -> None:
        for process in (self._asked, self._caller):
            if process is not None:
                with suppress(ProcessLookupError):
                    process.kill()
                process.wait()
