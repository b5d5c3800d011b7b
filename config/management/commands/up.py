"""`manage.py up`: the whole stack in one terminal, until Ctrl-C."""

import os
import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from config.playground import mark_database, refuse_foreign_database
from jobs.management import run
from jobs.management.arguments import PORTS, whole
from jobs.management.stack.programs import flower, web
from jobs.management.stack.stack import Program, free_port

ADMIN = "admin"


class Command(BaseCommand):
    help = (
        "Migrate, then run the site, the workers, beat and Flower until Ctrl-C. "
        "A process that dies is restarted. At the end, no process is left."
    )
    # The database may not be migrated yet; the checks run after that.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        port = whole(*PORTS)
        parser.add_argument("--port", type=port, default=8000, help="of the site, if it is free")
        parser.add_argument("--flower-port", type=port, default=5555, help="if it is free")
        run.add_options(parser)

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run until SIGINT or SIGTERM; refuse a database with other data."""
        refuse_foreign_database()
        call_command("migrate", interactive=False, verbosity=0)
        mark_database()
        self.check(databases=["default"])
        run.handle(given, beside=self._site_and_flower(given["port"], given["flower_port"]))

    def _site_and_flower(self, wanted_port: int, wanted_flower_port: int) -> list[Program]:
        port = self._port("The site", wanted_port)
        flower_port = self._port("Flower", wanted_flower_port)
        if flower_port != wanted_flower_port or "FLOWER_URL" not in os.environ:
            os.environ["FLOWER_URL"] = f"http://127.0.0.1:{flower_port}"
        password = secrets.token_urlsafe(12)
        site_url = f"http://127.0.0.1:{port}"
        self.stdout.write(f"Site    {site_url}/  {admin_login()}")
        self.stdout.write(f"Flower  http://127.0.0.1:{flower_port}/  login {ADMIN} / {password}")
        return [
            web(port=port),
            flower(port=flower_port, user=ADMIN, password=password, site_url=site_url),
        ]

    def _port(self, what: str, preferred: int) -> int:
        port = free_port(preferred)
        if port != preferred:
            self.stdout.write(f"{what}: port {preferred} is taken, {port} is used instead.")
        return port


def admin_login() -> str:
    """Make the user `admin` with a new password if there is none; return how to log in."""
    users = get_user_model()._default_manager
    if users.filter(username=ADMIN).exists():
        return (
            f"login {ADMIN}, with the password that it has; "
            f"`manage.py changepassword {ADMIN}` gives it another"
        )
    password = secrets.token_urlsafe(12)
    users.create_superuser(username=ADMIN, email="", password=password)
    return f"login {ADMIN} / {password}"
