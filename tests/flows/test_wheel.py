"""pyproject.toml, setup.py: the wheel, alone in an environment that has none of its extras.

The environment is made of what is installed here, and nothing is fetched: what the wheel needs is
linked into it, and nothing else.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import jobs
from tests.commands import Done, ran
from tests.docs.pages import PROJECT

pytestmark = pytest.mark.proof

SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "fleet", "jobs", "templates")
EXTRAS = {"flower", "tornado", "rich", "structlog", "whitenoise"}
NEED_EXTRAS = {"fleet.flower", "jobs.demo", "jobs.management.testing.", "jobs.catalog.mypy_plugin"}
"""Modules that may be absent, or not be imported, without an extra, pytest or mypy."""

SETTINGS = """
SECRET_KEY = "only for this test, of a length and variety that Django asks for 0123456789"
USE_TZ = True
INSTALLED_APPS = [
    "jobs", "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
    "django.contrib.sessions", "django.contrib.messages", "django_celery_beat",
    "django_celery_results", "django_object_actions",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}}
"""
USER = """
import jobs
from jobs import job, submit
from jobs.models import Run

@job(max_attempts=3)
def greet(name: str) -> str:
    return f"Hello {name}!"

@job(bind=True)
def shout(self: object, name: str) -> str:
    return name.upper()

@job
def count(words: list[str]) -> int:
    return len(words)

said: str = greet("Ada") + shout("Ada") + greet.name
number: int = count(["one"])
run: Run = submit(greet, owner="northwind", name="Ada")
version: str = jobs.__version__
"""
WRONG = """
submit(greet, owner=7, name="Ada")
greet(nam="Ada")
shout(1)
number = greet("Ada")
jobs.sumbit
"""
MYPY = "[mypy]\nstrict = True\n"
IMPORT_ALL = """
import importlib, json, pkgutil
import django
django.setup()
import fleet, jobs
failed = {}
for package in (fleet, jobs):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            importlib.import_module(module.name)
        except (ImportError, SystemExit) as error:
            failed[module.name] = str(error)
print(json.dumps(failed))
"""


def files(folder: Path) -> set[Path]:
    """Return the paths below a folder, but for Python's own caches."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def needed(name: str, seen: dict[str, Distribution], extras: frozenset[str]) -> None:
    """Collect a distribution and its requirements here, without extras that nothing asks for."""
    found = distribution(name)
    seen[found.name.lower()] = found
    for line in found.requires or ():
        wanted = Requirement(line)
        given = [{"extra": extra} for extra in ("", *extras)]
        if wanted.marker and not any(map(wanted.marker.evaluate, given)):
            continue
        if wanted.name.lower() not in seen or wanted.extras:
            needed(wanted.name, seen, frozenset(wanted.extras))


def copy_sources(folder: Path) -> Path:
    """Copy what the package is built of into a new folder, and return that."""
    folder.mkdir()
    for name in SOURCES:
        if (PROJECT / name).is_dir():
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / name, folder / name, ignore=skipped)
        else:
            shutil.copy(PROJECT / name, folder / name)
    return folder


class Environment:
    """An environment with the wheel, and commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "env/bin/python"
        self.sources = copy_sources(folder / "fairshift")
        venv.create(folder / "env")
        pip, quiet = [sys.executable, "-m", "pip"], ["--quiet", "--no-deps"]
        build = [*pip, "wheel", *quiet, "--no-build-isolation", "--wheel-dir", ".", "./fairshift"]
        subprocess.run(build, cwd=folder, check=True, timeout=300)
        [wheel] = folder.glob("*.whl")
        install = [*pip, "--python", str(self.python), "install", *quiet, "--no-index", str(wheel)]
        subprocess.run(install, cwd=folder, check=True, timeout=300)
        [self.site] = (folder / "env/lib").glob("python*/site-packages")
        self._link()
        (folder / "plain_settings.py").write_text(SETTINGS)

    def _link(self) -> None:
        """Link the requirements of the wheel's metadata."""
        [info] = self.site.glob("fairshift-*.dist-info")
        self.wheel = Distribution.at(info)
        found: dict[str, Distribution] = {}
        for line in self.wheel.requires or ():
            wanted = Requirement(line)
            if not wanted.marker or wanted.marker.evaluate({"extra": ""}):
                assert wanted.specifier.contains(distribution(wanted.name).version), line
                needed(wanted.name, found, frozenset(wanted.extras))
        for each in found.values():
            tops = {path.parts[0] for path in each.files or ()} - {"..", "__pycache__"}
            for top in tops:
                link = self.site / top
                if not link.exists():
                    link.symlink_to(Path(str(each.locate_file(top))))

    def run(self, *command: str, code: int = 0) -> Done:
        environ = {
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "plain_settings",
            "PYTHONPATH": str(self.folder),
        }
        answer = ran(str(self.python), *command, folder=self.folder, environ=environ)
        assert answer.returncode == code, answer.stdout + answer.stderr
        return answer


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """One for all tests: nothing in it is changed."""
    return Environment(tmp_path_factory.mktemp("wheel"))


def test_every_file_is_in_it(environment: Environment) -> None:
    """Statements, scripts, templates and the marks of types: not Python alone."""
    for name, place in (("fleet", "fleet"), ("jobs", "jobs"), ("templates", "jobs/templates")):
        there, here = files(environment.site / place), files(environment.sources / name)
        names = {str(path.relative_to(environment.sources / name)) for path in here}
        assert names - {str(path.relative_to(environment.site / place)) for path in there} == set()
    assert all((environment.site / name / "py.typed").is_file() for name in ("fleet", "jobs"))


@pytest.mark.smoke
def test_the_library_needs_no_extra(environment: Environment) -> None:
    """All modules can be imported, except those that an extra is for."""
    for name in EXTRAS:
        environment.run("-c", f"import {name}", code=1)
    failed = json.loads(environment.run("-c", IMPORT_ALL).stdout)
    left = {name for name in failed if not name.startswith(tuple(NEED_EXTRAS))}
    assert left == set(), failed


def test_the_command_needs_no_django(environment: Environment) -> None:
    """The installed `fairshift` runs without settings, and imports none of Django."""
    command = str(environment.folder / "env/bin/fairshift")
    plain = {"PATH": os.environ["PATH"]}
    answer = ran(command, "--help", folder=environment.folder, environ=plain)
    assert answer.returncode == 0 and "submit" in answer.stdout, answer.stderr
    answer = ran(command, "--version", folder=environment.folder, environ=plain)
    assert answer.stdout == f"fairshift {jobs.__version__}\n"
    answer = ran(command, "runs", folder=environment.folder, environ=plain)
    assert (answer.returncode, answer.stderr) == (2, "fairshift: set the variable FAIRSHIFT_URL\n")
    listed = "import sys, jobs.client.__main__; print({'django', 'celery'} & set(sys.modules))"
    assert environment.run("-c", listed).stdout == "set()\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("-m", "fleet.flower", "--app", "none"), "with its extra `flower`"),
        (("-m", "django", "fleet", "owners"), "with its extra `terminal`"),
    ],
)
def test_what_needs_an_extra_names_it(
    environment: Environment, command: tuple[str, ...], said: str
) -> None:
    """In one line, and not as a missing module."""
    answer = environment.run(*command, code=1)
    assert said in answer.stderr and "Traceback" not in answer.stderr


def test_a_user_s_types_are_checked(environment: Environment) -> None:
    """By a strict mypy against the wheel: correct code passes, wrong code fails."""
    for name, text in {"right.py": USER, "wrong.py": USER + WRONG, "mypy.ini": MYPY}.items():
        (environment.folder / name).write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache"]
    command += ["--python-executable", str(environment.python), "right.py", "wrong.py"]
    answer = ran(*command, folder=environment.folder, seconds=240)
    found = [line for line in answer.stdout.splitlines() if "error:" in line]
    expected = ["owner", "nam", "int", "str", "sumbit"]
    assert len(found) == len(expected), answer.stdout
    for word, line in zip(expected, found, strict=True):
        assert line.startswith("wrong.py") and f'"{word}"' in line
