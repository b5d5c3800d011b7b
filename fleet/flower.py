"""Flower with a way back: its own pages, and on a task's page a link to the run in the admin.

`python -m fleet.flower --app config --port=5555`: options other than `--app` are Flower's.
FAIRSHIFT_SITE_URL says where the admin is; without it there is no link. Flower shows
arguments and can revoke tasks, so it is refused to start without a login.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from celery.bin.celery import celery
from flower import command
from flower.app import Flower
from flower.urls import settings
from tornado.template import Loader, Template

OURS: Final = Path(__file__).resolve().parent.parent / "templates" / "flower"
THEIRS: Final = Path(settings["template_path"])
RUN_VERSIONS: Final = frozenset({7, 8})
"""Versions of the ids of durable runs; Celery's own task ids are of version 4."""


class LayeredLoader(Loader):
    """Finds templates in our folder first, then in Flower's.

    Flower's own are always found as `flower/<name>`: so one of ours may extend the one that
    it stands before.
    """

    def __init__(self, *, site: str) -> None:
        super().__init__(str(OURS), namespace={"run_address": lambda uuid: run_address(site, uuid)})

    def _create_template(self, name: str) -> Template:
        path = OURS / name
        if name.startswith("flower/") or not path.is_file():
            path = THEIRS / name.removeprefix("flower/")
        return Template(path.read_bytes(), name=name, loader=self)


class GuardedFlower(Flower):
    """Flower that has a login, or does not start."""

    def __init__(self, *, site: str, options: Any, **rest: Any) -> None:
        if not (options.basic_auth or options.auth):
            raise SystemExit(
                "Flower never runs without a login: set FLOWER_BASIC_AUTH=user:password, "
                "or FLOWER_AUTH and the OAuth2 options."
            )
        super().__init__(options=options, template_loader=LayeredLoader(site=site), **rest)


def run_address(site: str, uuid: str) -> str:
    """Return where the admin shows the run of a task; empty for a task that is no run."""
    try:
        is_run = UUID(uuid).version in RUN_VERSIONS
    except ValueError:
        return ""
    return f"{site.rstrip('/')}/admin/jobs/run/{UUID(uuid)}/change/" if site and is_run else ""


def main(arguments: Sequence[str]) -> None:
    """Run Flower until it is told to stop."""
    parser = argparse.ArgumentParser(prog="fleet.flower", add_help=False, allow_abbrev=False)
    parser.add_argument("--app", default="config")
    ours, theirs = parser.parse_known_args(arguments)
    site = os.environ.get("FAIRSHIFT_SITE_URL", "")
    # Flower's command makes its application by this name, after it has read all its options.
    command.Flower = partial(GuardedFlower, site=site)
    celery(["--app", ours.app, "flower", *theirs], prog_name="celery", auto_envvar_prefix="CELERY")


if __name__ == "__main__":
    main(sys.argv[1:])
