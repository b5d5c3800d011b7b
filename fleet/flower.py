"""Flower with a login, read-only, and with links from tasks to their runs in the admin.

`python -m fleet.flower --app config --port 5555`: options other than `--app` are Flower's. Flower
knows only the form `--port=5555`; here both forms work. FAIRSHIFT_SITE_URL is the admin's site;
without it there are no links. Flower shows arguments and can revoke tasks, so it does not start
without a login, also for its metrics and health check, and is read-only unless
`--read-only=false` (FLOWER_READ_ONLY=false) is given.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from celery.bin.celery import celery

try:
    from flower import command
except ModuleNotFoundError as error:
    raise SystemExit(
        "Flower is not installed: pip install 'flower>=2.2,<3', or fairshift with its extra "
        "`flower`."
    ) from error
from flower.app import Flower
from flower.options import default_options
from flower.urls import settings
from flower.views import monitor
from tornado.options import options as known
from tornado.template import Loader, Template
from tornado.web import authenticated

OURS: Final = Path(__file__).resolve().parent / "templates" / "flower"
THEIRS: Final = Path(settings["template_path"])
RUN_VERSIONS: Final = frozenset({7, 8})
"""UUID versions of the ids of durable runs; Celery's task ids have version 4."""


class LayeredLoader(Loader):
    """Finds templates in our folder first, then in Flower's.

    `flower/<name>` is always Flower's own: ours can extend the template that it replaces.
    """

    def __init__(self, *, site: str) -> None:
        super().__init__(str(OURS), namespace={"run_address": lambda uuid: run_address(site, uuid)})

    def _create_template(self, name: str) -> Template:
        path = OURS / name
        if name.startswith("flower/") or not path.is_file():
            path = THEIRS / name.removeprefix("flower/")
        return Template(path.read_bytes(), name=name, loader=self)


def behind_login(handler: Any) -> type:
    """Return one of Flower's request handlers that needs no login, with its login."""
    return type(handler.__name__, (handler,), {"get": authenticated(handler.get)})


class GuardedFlower(Flower):
    """Flower, which does not start without a login."""

    def __init__(self, *, site: str, options: Any, **rest: Any) -> None:
        if not (options.basic_auth or options.auth):
            raise SystemExit(
                "Flower never runs without a login: set FLOWER_BASIC_AUTH=user:password, "
                "or FLOWER_AUTH and the OAuth2 options."
            )
        if not all(all(login.partition(":")) for login in options.basic_auth or ()):
            raise SystemExit(
                "FLOWER_BASIC_AUTH must be user:password, and neither of them may be empty."
            )
        super().__init__(options=options, template_loader=LayeredLoader(site=site), **rest)
        start = f"/{options.url_prefix.strip('/')}" if options.url_prefix else ""
        guarded = {"metrics": monitor.Metrics, "healthcheck": monitor.Healthcheck}
        # Before Flower's own, which need no login.
        self.add_handlers(
            ".*", [(f"{start}/{path}", behind_login(own)) for path, own in guarded.items()]
        )


def run_address(site: str, uuid: str) -> str:
    """Return the URL of a task's run in the admin; empty for a task that is no run."""
    try:
        is_run = UUID(uuid).version in RUN_VERSIONS
    except ValueError:
        return ""
    return f"{site.rstrip('/')}/admin/jobs/run/{UUID(uuid)}/change/" if site and is_run else ""


def spelled(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments with options as `--name=value`, the only form that Flower reads.

    Raises SystemExit for an option without its value and for a bad number.
    """
    rest = iter(arguments)
    for word in rest:
        flag, equals, value = word.partition("=")
        kind = _kind(flag)
        if kind is None or (kind is bool and not equals):
            yield word
            continue
        if not equals:
            value = next(rest, "--")
        if not equals and value.startswith("--"):
            raise SystemExit(f"fleet.flower: {flag} needs a value, as in {flag}=…")
        if kind in {int, float}:
            _refuse_no_number(flag, value, kind)
        yield f"{flag}={value}"


def _says_whether_it_reads(arguments: Sequence[str]) -> bool:
    names = {word.partition("=")[0].replace("_", "-") for word in arguments}
    return "--read-only" in names or "FLOWER_READ_ONLY" in os.environ


def _kind(flag: str) -> type | None:
    """Return the type of a Flower option's values; None for other arguments."""
    name = flag.removeprefix("--").replace("-", "_")
    if not flag.startswith("--") or name not in default_options:
        return None
    option = known._options[known._normalize_name(name)]
    return str if option.multiple else option.type


def _refuse_no_number(flag: str, value: str, kind: type) -> None:
    try:
        kind(value)
    except ValueError:
        raise SystemExit(f"fleet.flower: {flag} is {value!r:.40}, but must be a number") from None


def main(arguments: Sequence[str]) -> None:
    """Run Flower until a signal stops it."""
    parser = argparse.ArgumentParser(prog="fleet.flower", add_help=False, allow_abbrev=False)
    parser.add_argument("--app", default="config")
    ours, theirs = parser.parse_known_args(arguments)
    theirs = list(spelled(theirs))
    if not _says_whether_it_reads(theirs):
        theirs.append("--read-only=true")
    site = os.environ.get("FAIRSHIFT_SITE_URL", "")
    # Flower's command creates its application by this name, after it has read its options.
    command.Flower = partial(GuardedFlower, site=site)
    celery(["--app", ours.app, "flower", *theirs], prog_name="celery", auto_envvar_prefix="CELERY")


if __name__ == "__main__":
    main(sys.argv[1:])
