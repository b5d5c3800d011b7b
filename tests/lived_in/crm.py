"""The project that has lived with Celery and beat, with servers of Debian's."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.commands import Done, ran
from tests.docs.pages import PROJECT

BIN = Path(sys.executable).parent
STOCK = (
    "celery -A crm worker -Q celery,mail,reports --concurrency 2",
    "celery -A crm beat",
)
OURS = ("python manage.py fleet run --concurrency 2",)
MINUTELY = {
    "each minute",
    "each minute in mails",
    "each minute of workdays",
    "each minute with a priority",
    "each minute in its queue",
    "each minute, or not at all",
    "close of the day",
    "close of the day: total",
    "close of the day: chain",
}
SECONDS = {"each 10 s": 10, "each 15 s": 15, "each 20 s": 20}


class Crm:
    """The project in a folder of its own, with its database and its database of Redis."""

    def __init__(self, folder: Path, urls: dict[str, str], *, name: str, number: int) -> None:
        self.folder, self.record = folder / name, folder / f"{name}.record"
        shutil.copytree(Path(__file__).parent / "project", self.folder)
        with psycopg.connect(urls["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        self.environ: dict[str, str] = {
            **{key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ},
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": f"{self.folder}:{PROJECT}",
            "CRM_DATABASE": name,
            "CRM_PORT": str(urlsplit(urls["DATABASE_URL"]).port),
            "CRM_RECORD": str(self.record),
            "CELERY_BROKER_URL": urls["REDIS_URL"].removesuffix("/0") + f"/{number}",
        }
        self.manage("makemigrations people")
        self.manage("migrate -v 0")

    @property
    def has_fairshift(self) -> bool:
        """Whether the settings have Fairshift."""
        return "WITH_FAIRSHIFT" in self.environ

    @has_fairshift.setter
    def has_fairshift(self, value: bool) -> None:
        self.environ.pop("WITH_FAIRSHIFT", None)
        if value:
            self.environ |= {"WITH_FAIRSHIFT": "1", "FAIRSHIFT_TEMPLATES": f"{PROJECT}/templates"}

    def manage(self, line: str, *more: str) -> Done:
        """Run a command of manage.py, which ends well."""
        words = ["python", "manage.py", *line.split(), *more]
        done = ran(*words, folder=self.folder, environ=self.environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def shell(self, code: str) -> str:
        """Return what code prints in the project's shell."""
        return self.manage("shell -v 0 -c", code).stdout

    @contextmanager
    def running(self, *lines: str) -> Iterator[None]:
        """Run processes, each with a log; they end by SIGTERM."""
        with ExitStack() as ending:
            started = []
            for number, line in enumerate(lines):
                log = ending.enter_context((self.folder / f"{number}.log").open("wb"))
                started.append(
                    subprocess.Popen(
                        line.split(), cwd=self.folder, env=self.environ, stdout=log, stderr=log
                    )
                )
            try:
                yield
            finally:
                for process in started:
                    process.send_signal(signal.SIGTERM)
                statuses = [process.wait(200) for process in started]
        assert statuses == [0] * len(lines), self.logs()

    def logs(self) -> str:
        return "\n".join(log.read_text(errors="replace") for log in self.folder.glob("*.log"))

    def done(self) -> list[dict[str, Any]]:
        """Return what its tasks have noted."""
        text = self.record.read_text() if self.record.exists() else ""
        return [json.loads(line) for line in text.splitlines()]
