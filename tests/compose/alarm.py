"""A real Prometheus with the real rules, whose times are shortened, before a real web process."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import urllib3

from jobs.management.stack.stack import free_port
from tests.docs.pages import PROJECT
from tests.waiting import wait_for

PROMETHEUS: Final = PROJECT / "compose/prometheus"
SHORTER: Final = 20
"""By how much times of rules are shortened: windows, `for`, and limits of metrics in seconds."""
MOST_SECONDS: Final = 30
"""The longest limit of a metric in seconds, other than that of the statistics."""
STATISTICS_SHORTER: Final = 8
"""By how much the limit of the statistics is shortened: a minute is not final before its end."""

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_DURATION: Final = re.compile(r"(?<=for: )(\d+)([smh])\b|(?<=\[)(\d+)([smh])(?=\])")
_LIMIT: Final = re.compile(r"(statistics_lag)?(_seconds\)+ > )(\d+)")


def shortened(rules: str) -> str:
    """Return rules whose durations and limits in seconds are a twentieth, at least a second."""

    def duration(found: re.Match[str]) -> str:
        number, unit = found[1] or found[3], found[2] or found[4]
        return f"{_shorter(int(number) * _UNITS[unit])}s"

    def limit(found: re.Match[str]) -> str:
        seconds = int(found[3])
        shorter = (
            seconds // STATISTICS_SHORTER if found[1] else min(MOST_SECONDS, _shorter(seconds))
        )
        return f"{found[1] or ''}{found[2]}{shorter}"

    limited = _LIMIT.sub(limit, rules)
    return _DURATION.sub(duration, limited)


def shipped_alerts() -> set[str]:
    """Return the names of all shipped alerts, without the project's name before them."""
    return set(re.findall(r"alert: Fairshift(\w+)", (PROMETHEUS / "rules.yml").read_text()))


def _shorter(seconds: int) -> int:
    return max(1, seconds // SHORTER)


class Alarm:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self.fired: set[str] = set()
        """All alerts that have been seen to fire."""
        self._url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=5)

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire, without the project's name before them.

        The one of problems has the problem's code behind it, as "Problem clock".
        """
        alerts = self._get("/api/v1/alerts")["alerts"]
        labels = [each["labels"] for each in alerts if each["state"] == "firing"]
        firing = {
            f"{one['alertname'].removeprefix('Fairshift')} {one.get('code', '')}".strip()
            for one in labels
        }
        self.fired |= firing
        return firing

    def end(self, *names: str, seconds: float) -> None:
        """Wait until none of these alerts fires."""
        try:
            wait_for(lambda: not set(names) & self.firing(), seconds=seconds)
        except AssertionError:
            raise AssertionError(f"{set(names) & self.firing()} fire on") from None

    def fires(self, *names: str, seconds: float) -> None:
        """Wait until each of these alerts has fired; one may end before another begins."""
        missing = set(names)

        def have_fired() -> bool:
            missing.difference_update(self.firing())
            return not missing

        try:
            wait_for(have_fired, seconds=seconds)
        except AssertionError:
            raise AssertionError(f"{missing} do not fire in {seconds:g} s") from None

    def value(self, expression: str) -> float | None:
        """Return the value of an expression now; None if it has none."""
        found = self._get("/api/v1/query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else None

    def is_ready(self) -> bool:
        """Say whether it answers."""
        try:
            return self._pool.request("GET", f"{self._url}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _get(self, path: str, **fields: str) -> dict[str, list[dict]]:
        answer = self._pool.request("GET", f"{self._url}{path}", fields=fields).json()
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def watching(target: str, *, token: str, folder: Path) -> Iterator[Alarm]:
    """Run Prometheus with the shipped configuration, which scrapes this target each second."""
    program = shutil.which("prometheus")
    assert program, "install Debian's prometheus"
    folder.mkdir()
    (folder / "token").write_text(token)
    (folder / "rules.yml").write_text(shortened((PROMETHEUS / "rules.yml").read_text()))
    config = (PROMETHEUS / "prometheus.yml").read_text()
    for shipped, here in (
        ("15s", "1s"),
        ("web:8000", target),
        ("/etc/prometheus/token", str(folder / "token")),
    ):
        assert shipped in config
        config = config.replace(shipped, here)
    (folder / "prometheus.yml").write_text(config)
    port = free_port(0)
    with (folder / "prometheus.log").open("wb") as log:
        running = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        alarm = Alarm(f"http://127.0.0.1:{port}")
        wait_for(alarm.is_ready, seconds=30, what="Prometheus")
        yield alarm
    finally:
        running.kill()
        running.wait()
