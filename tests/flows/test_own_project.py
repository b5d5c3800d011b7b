"""docs/start/own-project.md: its files make a project that runs; a missing line is named.

Everything is copied out of the page. Fairshift is installed by pip from its sources, and what it
needs is there already.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import django.conf
import psycopg
import pytest
import requests
from psycopg import sql

from jobs.management.stack.stack import free_port
from tests.commands import Done, ran
from tests.docs import pages
from tests.docs.pages import read
from tests.flows.servers import Servers, own_servers
from tests.flows.test_wheel import copy_sources
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

PAGE = read("docs/start/own-project.md")
block = partial(pages.block, PAGE)
BIN = Path(sys.executable).parent
FILES = {"init": "__init__.py", "urls": "urls.py", "tasks": "tasks.py"}
PROJECT_OF_DJANGO = Path(django.conf.__file__).parent / "project_template/project_name"
KEPT = ("PATH", "HOME", "LANG", "TMPDIR")


WORKER, SYSTEM, BEAT = block("processes", language="sh").splitlines()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fairshift as pip installs it, in a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    copy_sources(folder / "fairshift")
    [install] = [line for line in block("install", language="sh").splitlines() if "pip" in line]
    # What it needs is installed, and nothing is fetched.
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--target", str(folder / "site")]
    command = [sys.executable, "-m", *install.split(), *options]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return folder / "site"


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A PostgreSQL with an empty database of the name that the page has, and a Redis."""
    with own_servers() as servers:
        _create(servers, "shop")
        yield servers


def _create(servers: Servers, name: str, *, template: str = "template1") -> None:
    # Not in a transaction, in which `servers.sql` runs what it is given.
    with psycopg.connect(servers.postgres.url, autocommit=True) as connection:
        names = map(sql.Identifier, (name, template))
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))


class Shop:
    """The project of the page in a folder, and commands in it."""

    def __init__(self, folder: Path, installed: Path, servers: Servers) -> None:
        self.folder = folder
        postgres = urlsplit(servers.postgres.url)
        [host] = parse_qs(postgres.query).get("host", [postgres.hostname or ""])
        self.environ = {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(installed),
            "PGHOST": unquote(host),
            "PGUSER": postgres.username or "",
            "PGPASSWORD": unquote(postgres.password or ""),
            "CELERY_BROKER_URL": servers.redis.url,
        }
        [start] = [line for line in block("install", language="sh").splitlines() if "start" in line]
        self.run(start)
        with (folder / "shop/settings.py").open("a") as settings:
            settings.write(block("settings"))
        for name, file in FILES.items():
            (folder / "shop" / file).write_text(block(name))

    def run(self, line: str) -> Done:
        """Run a command line of the page; the caller checks its status."""
        return ran(*line.split(), folder=self.folder, environ=self.environ)

    def shell(self, code: str) -> str:
        """Return the output of code in the project's shell."""
        answer = self.in_shell(code)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def in_shell(self, code: str) -> Done:
        """Run code in the project's shell; the caller checks its status."""
        command = [sys.executable, "manage.py", "shell", "--verbosity", "0", "--command", code]
        return ran(*command, folder=self.folder, environ=self.environ)

    def change(self, file: str, old: str, new: str) -> None:
        """Change a line of a file, as a user who forgot it."""
        path = self.folder / "shop" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def found(self) -> set[str]:
        """Return the ids of ours in what `check --deploy` says of the settings and the wiring.

        The embedded Redis is old, processes of a scene before this one may have ended, and a key
        ring is each installation's own.
        """
        said = self.run("python manage.py check --deploy").stderr
        others = {f"fairshift.{number}" for number in ("W035", "W110", "W111", "W205")}
        return set(re.findall(r"fairshift\.[EW]\d+", said)) - others

    @contextmanager
    def running(self, *lines: str) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Run processes of the page, each with a log; end them afterwards."""
        logs = [(self.folder / f"{number}.log").open("wb") for number in range(len(lines))]
        started = [
            subprocess.Popen(
                line.split(), cwd=self.folder, env=self.environ, stdout=log, stderr=log
            )
            for line, log in zip(lines, logs, strict=True)
        ]
        try:
            yield started
        finally:
            for process in started:
                process.terminate()
            for process, log in zip(started, logs, strict=True):
                try:
                    process.wait(200)
                except subprocess.TimeoutExpired:
                    process.kill()
                log.close()

    def logs(self) -> str:
        return "\n".join(log.read_text(errors="replace") for log in self.folder.glob("*.log"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, installed: Path, servers: Servers) -> Shop:
    """The project, with its tables."""
    shop = Shop(tmp_path_factory.mktemp("project"), installed, servers)
    migrated = shop.run(block("set-up", language="sh").splitlines()[0])
    assert migrated.returncode == 0, migrated.stderr
    return shop


@pytest.fixture
def copied(shop: Shop, tmp_path: Path) -> Shop:
    """The same project in a folder of its own, to be spoilt."""
    copy = object.__new__(Shop)
    copy.folder, copy.environ = tmp_path / "project", shop.environ
    shutil.copytree(shop.folder, copy.folder, ignore=shutil.ignore_patterns("__pycache__", "*.log"))
    return copy


def test_the_page_s_project_passes_its_checks(shop: Shop) -> None:
    """By the command of the page, and with `--deploy`."""
    checked = shop.run(block("set-up", language="sh").splitlines()[1])
    assert checked.returncode == 0 and shop.found() == set(), checked.stderr


def test_a_run_of_the_page_s_project_succeeds_and_one_fails(shop: Shop) -> None:
    """With the processes and the code of the page; its error can be read."""
    with shop.running(WORKER, SYSTEM, BEAT) as started:
        shop.shell(block("submit") + block("failed"))

        def ended() -> str:
            assert all(process.poll() is None for process in started), shop.logs()
            return shop.shell(
                "from jobs.models import Run\n"
                "if not Run.objects.open().exists():\n"
                "    run, failed = Run.objects.order_by('id')\n"
                "    print(run.state, run.result_value, failed.id)"
            ).strip()

        answer = wait_for(ended, seconds=60, what="both runs to end")
    *words, failed = answer.split()
    assert words == ["succeeded", "Hello", "Ada!"]
    code = f"from jobs.models import Run\nrun = Run.objects.get(id='{failed}')\n{block('error')}"
    said = shop.shell(code)
    assert said.startswith("failed TypeError") and "\n1 failed TypeError" in said
    assert "in greet" in said


def test_twelve_lines_and_four_commands_lead_to_the_first_run(shop: Shop) -> None:
    """From `startproject` on, as the page says; with the forms that a person fills in."""
    typed = [line for name in ("settings", "init", "tasks") for line in block(name).splitlines()]
    made = (PROJECT_OF_DJANGO / "urls.py-tpl").read_text().replace("'", '"').splitlines()
    typed += [line for line in block("urls").splitlines() if line not in made]
    assert len([line for line in typed if line.strip()]) <= 12
    _, create, run, web = block("first", language="sh").splitlines()
    assert len(block("first", language="sh").splitlines()) <= 4

    shop.environ |= {f"DJANGO_SUPERUSER_{name}": "ann" for name in ("USERNAME", "PASSWORD")}
    shop.environ["DJANGO_SUPERUSER_EMAIL"] = "ann@example.com"
    assert shop.run(f"{create} --noinput").returncode == 0
    address = f"127.0.0.1:{free_port(0)}"
    with shop.running(run, f"{web} {address} --noreload"):
        ann = Person(f"http://{address}")
        ann.sends("/admin/login/", username="ann", password="ann")
        ann.sends("/admin/jobs/owner/add/", slug="westwind")  # the page's is there
        assert "westwind" in ann.opens(SUBMIT_FORM)
        form = {
            "owner": "westwind",
            "task": "shop.tasks.greet",
            "arguments": '{"name": "{target}"}',
            "names": "Ada",
        }
        ann.sends(SUBMIT_FORM, **form, look="Forecast")
        ann.sends(SUBMIT_FORM, **form, submit="Submit")
        wait_for(
            lambda: (
                "Hello Ada!"
                in shop.shell(
                    "from jobs.models import Run\n"
                    "[run] = Run.objects.filter(owner__slug='westwind')\nprint(run.result_value)"
                )
            ),
            seconds=120,
            what="the first run to succeed",
        )
        assert "westwind" in ann.opens("/fairshift/")
    # The command's log has the project's tasks, and not the rounds of each second.
    assert "jobs    | " in shop.logs() and "beat    | " in shop.logs()
    assert "Task shop.tasks.greet" in shop.logs()
    assert not re.findall("(?:Task|Sending due task) fairshift.*", shop.logs())


SUBMIT_FORM = "/fairshift/submissions/submit/"


class Person:
    """A browser without scripts: it opens pages, and sends the forms that it was shown."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.session = requests.Session()
        self.page = self.at = ""
        wait_for(self._answers, what="the site to answer")

    def _answers(self) -> bool:
        try:
            return self.session.get(f"{self.site}/admin/login/", timeout=30).ok
        except requests.ConnectionError:
            return False

    def opens(self, path: str) -> str:
        """Open a page that answers well; return its text."""
        answer = self.session.get(self.site + path, timeout=60)
        assert answer.ok, answer.text
        self.page, self.at = answer.text, path
        return self.page

    def sends(self, path: str, **fields: str) -> None:
        """Send a form as the page of this path has filled it in, with these fields."""
        if path != self.at:
            self.opens(path)
        filled = dict(re.findall(FILLED, self.page))
        answer = self.session.post(self.site + path, data={**filled, **fields}, timeout=60)
        assert answer.ok and "errornote" not in answer.text, answer.text
        self.page, self.at = answer.text, urlsplit(answer.url).path


FILLED = r'<input type="(?:hidden|number|text)" name="([^"]+)" value="([^"]*)"'


TESTING = read("docs/use/testing.md")
TESTS = {
    "python manage.py test": ("Ran 2 tests", {"shop/tests.py": block("tests")}),
    "python -m pytest -q shop/test_greet.py": (
        "3 passed",
        {
            "pytest.ini": pages.block(TESTING, "pytest", language="ini"),
            "shop/test_greet.py": pages.block(TESTING, "tests"),
        },
    ),
}
"""Commands that test a project: what they print, and the files of the pages that they need."""


@pytest.mark.parametrize("command", TESTS)
def test_tests_of_tasks_pass_without_redis(copied: Shop, command: str) -> None:
    """Neither Redis nor a worker is there; pytest finds the plugin of the installed package."""
    said, files = TESTS[command]
    for name, text in files.items():
        (copied.folder / name).write_text(text)
    copied.environ = {**copied.environ, "CELERY_BROKER_URL": "redis://127.0.0.1:1/0"}
    answer = copied.run(command)
    printed = answer.stdout + answer.stderr
    assert answer.returncode == 0 and said in printed, printed


def test_what_has_no_app_of_the_project_to_boot_with_names_the_line(copied: Shop) -> None:
    """With an empty __init__.py a process has Celery's default app: the error says so."""
    (copied.folder / "shop/__init__.py").write_text("")
    said = copied.shell(
        "from jobs import submit\nfrom jobs.models import Owner\nfrom shop.tasks import greet\n"
        "Owner.objects.get_or_create(slug='southwind')\n"
        "try:\n    submit(greet, owner='southwind', name='Ada')\n"
        "except Exception as error:\n    print(error)"
    )
    assert "celery_app(" in said


SUBMIT = (
    "from jobs import submit\nfrom shop.tasks import greet\n"
    "submit(greet, owner='southwind', name='Ada')"
)
LOGIN = (
    "from django.test import Client\n"
    "client = Client(raise_request_exception=False, SERVER_NAME='localhost')\n"
    "answer = client.post('/admin/login/', {'username': 'ada', 'password': 'ada'})\n"
    "page = answer.content.decode()\n"
    "raise SystemExit(page[page.index('<pre class=\"exception_value'):][:300].replace('\\n', ' '))"
)


def test_what_needs_a_table_that_is_missing_says_what_to_run(
    copied: Shop, servers: Servers
) -> None:
    """Both workers, which do not boot, a submit, the admin's page, and beat, which waits for it."""
    _create(servers, "bare")
    copied.change("settings.py", '"NAME": "shop"', '"NAME": "bare"')
    for worker in (WORKER, SYSTEM):
        answer = copied.run(worker)
        assert answer.returncode != 0 and "python manage.py migrate" in answer.stderr
        assert "'bare'" in answer.stderr and "Traceback" not in answer.stderr
    for code in (SUBMIT, LOGIN):
        answer = copied.in_shell(code)
        *_, sentence = answer.stderr.splitlines()
        assert answer.returncode == 1 and "Migrations are missing" in sentence, answer.stderr
        assert "python manage.py migrate" in sentence and "bare" in sentence
    with copied.running(BEAT):
        wait_for(
            lambda: "python manage.py migrate" in copied.logs(), seconds=60, what="beat to say"
        )
    assert "Traceback" not in copied.logs()


def test_a_worker_on_the_redis_of_another_project_does_not_boot(
    copied: Shop, servers: Servers
) -> None:
    """Both would take each other's messages; a check on deploy alone comes too late."""
    _create(servers, "other", template="shop")
    copied.change("settings.py", '"NAME": "shop"', '"NAME": "other"')
    answer = copied.run(WORKER)
    assert answer.returncode != 0 and "belongs to the installation with" in answer.stderr
    assert "CELERY_BROKER_URL" in answer.stderr and "Traceback" not in answer.stderr
