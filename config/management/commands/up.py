"""`manage.py up`: the whole stack in one terminal, until Ctrl-C."""

import os
import secrets
import signal
import time
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.playground import mark_database, refuse_foreign_database
from fleet.stack.programs import beat, flower, job_worker, notices_worker, system_worker, web
from fleet.stack.stack import Program, Stack, StackError, free_port
from jobs.management.arguments import PORTS, interrupt, number, whole

ADMIN = "admin"
LOOK_SECONDS = 0.2
# They log the same each second; only their log files are complete.
MONOTONOUS = ("beat", "system")


class Command(BaseCommand):
    help = (
        "Migrate, then run the site, the workers, beat and Flower until Ctrl-C. "
        "A process that dies is restarted. At the end, no process is left."
    )
    # The database may not be migrated yet; the checks run after that.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        few, port = whole(1, 64), whole(*PORTS)
        parser.add_argument("--workers", type=few, default=1, help="workers of people's jobs")
        parser.add_argument("--slots", type=whole(1, 256), default=4, help="of each worker")
        parser.add_argument("--beats", type=few, default=1, help="one sends, the others stand by")
        parser.add_argument("--port", type=port, default=8000, help="of the site, if it is free")
        parser.add_argument("--flower-port", type=port, default=5555, help="if it is free")
        parser.add_argument(
            "--grace",
            type=number(0, 86_400),
            default=10.0,
            help="seconds for running jobs to end at the end",
        )

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run until SIGINT or SIGTERM; refuse a database with other data."""
        refuse_foreign_database()
        signal.signal(signal.SIGTERM, interrupt)
        stack = None
        try:
            call_command("migrate", interactive=False, verbosity=0)
            mark_database()
            self.check(databases=["default"])
            logs = settings.STATE_DIR / "logs"
            stack = Stack(self._programs(given), log_folder=logs, restart=True)
            stack.start()
            stack.wait_ready()
            self.stdout.write(self.style.SUCCESS(f"Everything runs. Logs: {logs}. Ctrl-C ends it."))
            while True:
                stack.watch()
                for name, line in stack.new_lines():
                    if not name.startswith(MONOTONOUS):
                        self.stdout.write(f"{name:10} | {line}")
                time.sleep(LOOK_SECONDS)
        except StackError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.stdout.write("Stopping.")
        finally:
            # A second Ctrl-C must not leave a part of the stack behind.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if stack is not None:
                stack.stop(grace_seconds=given["grace"])

    def _programs(self, given: dict[str, Any]) -> list[Program]:
        port = self._port("The site", given["port"])
        flower_port = self._port("Flower", given["flower_port"])
        environment = {}
        if flower_port != given["flower_port"] or "FLOWER_URL" not in os.environ:
            environment["FLOWER_URL"] = f"http://127.0.0.1:{flower_port}"
        flower_password = secrets.token_urlsafe(12)
        self.stdout.write(f"Site    http://127.0.0.1:{port}/  {admin_login()}")
        self.stdout.write(
            f"Flower  http://127.0.0.1:{flower_port}/  login {ADMIN} / {flower_password}"
        )
        names = [f"jobs-{number}" for number in range(1, given["workers"] + 1)]
        beats = ["beat", *(f"beat-{number}" for number in range(2, given["beats"] + 1))]
        return [
            web(port=port, environment=environment),
            system_worker(environment=environment),
            notices_worker(environment=environment),
            *(job_worker(name, slots=given["slots"], environment=environment) for name in names),
            *(beat(name, environment=environment) for name in beats),
            flower(
                port=flower_port,
                user=ADMIN,
                password=flower_password,
                site_url=f"http://127.0.0.1:{port}",
                environment=environment,
            ),
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
