"""The next version of Fairshift, made for a scene: a copy of this one with a migration more."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from jobs.management.stack.stack import Program, Running
from tests.commands import PROJECT

SOURCES: Final = ("config", "fleet", "jobs", "templates", "tests")
VERSION: Final = "99.0"
MIGRATION: Final = '''"""What the next version adds, and old code does not know."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("jobs", "{last}")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE jobs_worker ADD COLUMN next_version_note text;"
            "CREATE TABLE jobs_next_version (id bigint PRIMARY KEY)"
        )
    ]
'''


def make_next_version(folder: Path) -> Path:
    """Copy the code into a folder, as its next version; return the folder."""
    for name in SOURCES:
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "manage.py", folder)
    number = folder / "jobs/core/version.py"
    text = number.read_text()
    number.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{VERSION}"', text))
    assert VERSION in number.read_text()
    migrations = folder / "jobs/migrations"
    last = max(path.stem for path in migrations.glob("[0-9]*.py"))
    (migrations / "9999_next.py").write_text(MIGRATION.format(last=last))
    return folder


def migrate(folder: Path, environ: Mapping[str, str]) -> None:
    """Run the migrations of a version."""
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--no-input"],
        env={**environ, "PYTHONPATH": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "9999_next... OK" in done.stdout, done.stdout


def starter(folder: Path) -> Callable[[Program, BinaryIO], Running]:
    """Return what starts programs of a version: its folder comes first in Python's path."""

    def start(program: Program, output: BinaryIO) -> Running:
        return subprocess.Popen(
            program.command,
            env={**program.environment, "PYTHONPATH": str(folder)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    return start
