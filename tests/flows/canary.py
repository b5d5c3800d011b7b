"""The scene of the canary: secrets, an installation through which they go, and who asks it."""

import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex, token_urlsafe
from typing import Any, Final

from django.apps import apps

from tests.flows import leaks
from tests.flows.installation import Installation
from tests.flows.web import Site
from tests.jobs.api.matrix.operations import OPERATIONS
from tests.jobs.pages.matrix.places import PLACES, unknown_keys


def _secret(name: str) -> str:
    return f"{name}{token_urlsafe(18).replace('-', 'x').replace('_', 'y')}"


ARGUMENT: Final = _secret("Argument")
RESULT: Final = _secret("Result")
ERROR: Final = _secret("Error")
TARGET: Final = _secret("Target")
LOGGED: Final = _secret("Logged")
"""A task logs it; its argument is this backwards."""
LOCAL: Final = ARGUMENT[::-1]
"""A value of a frame, which a task makes of its argument."""
CLEAR: Final = _secret("Clear")
"""Given in every way that stores it in clear: proves that the search finds it."""

TOKENS: Final = """
from django.contrib.auth.models import Permission, User
from django.test import Client
from jobs.models import Membership, Owner, Role
from jobs.owners.limits import pause_owner
from jobs.owners.tokens import make_token

acme, globex = Owner.objects.get(slug="acme"), Owner.objects.get(slug="globex")
paused = Owner.objects.create(slug="paused")
pause_owner(paused, reason="stocktaking")
everything = ["read", "submit", "operate", "approve", "admin"]
print("token submitter", make_token("a", scopes=everything, owner=acme).secret)
print("token paused", make_token("e", scopes=everything, owner=paused).secret)
print("token reader", make_token("b", scopes=["read"], owner=acme).secret)
print("token stranger", make_token("c", scopes=everything, owner=globex).secret)
print("token metrics", make_token("d", scopes=["read"]).secret)
for name, role, owners, hidden in (
    ("reader", Role.VIEWER, [acme, paused], ["view_arguments"]),
    ("seer", Role.VIEWER, [acme, paused], []),
    ("stranger", Role.ADMIN, [globex], []),
):
    user = User.objects.create_user(name, is_staff=True)
    rights = Permission.objects.filter(content_type__app_label="jobs")
    user.user_permissions.set(rights.exclude(codename__in=hidden))
    for owner in owners:
        Membership.objects.create(owner=owner, user=user, role=role)
    client = Client()
    client.force_login(user)
    print("session", name, client.cookies["sessionid"].value)
"""
IN_CLEAR: Final = """
from jobs import submit
from tests.flows.traced import say
from tests.tasks import echo

submit("tests.echo", "{secret}", owner="acme", countdown=9_999)
echo.apply_async(["{secret}"])
echo.apply_async(["{secret}"], queue="unserved")
submit("flows.say", text="{secret}", owner="acme")
"""
"""Without a key ring: runs, and plain messages of Celery. The second task logs its argument."""
AGED: Final = """
from datetime import timedelta
from jobs.core import sql
from jobs.system.partitions import make_day
from jobs.system.retention.rounds import remove_old_history

day = sql.now() - timedelta(days=400)
make_day(day)
time = format(int(day.timestamp() * 1000), "012x")
old = "(%s || substr(replace({0}::text, '-', ''), 13))::uuid"
for table, column in (("jobs_log", "run_id"), ("jobs_attempt", "run_id"), ("jobs_run", "id")):
    sql.query(
        f"UPDATE {table} SET {column} = {old.format(column)} WHERE {column} IN "
        "(SELECT id FROM jobs_run WHERE ended_at IS NOT NULL)",
        [time],
    ) if column == "run_id" else sql.query(
        f"UPDATE jobs_run SET id = {old.format('id')}, ended_at = %s, created_at = %s "
        "WHERE ended_at IS NOT NULL",
        [time, day, day],
    )
remove_old_history()
"""
"""Makes ended runs old, and archives them."""


class Hook(BaseHTTPRequestHandler):
    """Answers with a secret: 200, or 500 below /fails."""

    def do_GET(self) -> None:
        self.send_response(500 if self.path.startswith("/fails") else 200)
        self.end_headers()
        self.wfile.write(RESULT.encode())

    def log_message(self, *_words: object) -> None:
        """Stay silent."""


@contextmanager
def hooks() -> Iterator[str]:
    """Run a server for requests of runs; yield its host with its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Scene:
    """The installation, its addresses, and who asks it."""

    here: Installation
    site: str
    flower: str
    hook: str
    given: Mapping[str, str]
    tokens: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)

    def submit(self, name: str, task: str, *, token: str = "submitter", **more: Any) -> None:
        """Submit a run over the API, with the secret target."""
        body = {"task": task, "target": TARGET, "max_attempts": 1, **more}
        site = Site(self.site, self.tokens[token])
        answer = site.send(
            "POST", "/runs", body, traceparent=f"00-{token_hex(16)}-{token_hex(8)}-01"
        )
        assert answer.status == 202, answer.body
        self.runs[name] = answer.body["id"]

    def is_ended(self, name: str) -> bool:
        found = self.here.servers.sql(
            f"SELECT ended_at IS NOT NULL FROM jobs_run WHERE id = '{self.runs[name]}'"
        )
        return found == [(True,)]

    def shown_to(self, who: str) -> dict[str, bytes]:
        """Return all pages, also of the admin, that one visitor asks for."""
        cookie = {"Cookie": f"sessionid={self.sessions[who]}"}
        addresses = {"/health/ready", "/metrics"}
        for run in self.runs.values():
            keys = {**unknown_keys(), "run_id": run, "slug": "acme", "job_id": 1}
            keys |= {"submission_id": 1, "worker_id": self._worker()}
            addresses |= {place.address(keys) for place in PLACES}
            addresses |= {f"/admin/jobs/{name}/{run}/change/" for name in ("run", "attempt")}
            addresses |= {f"/search/?q={text}" for text in (run, ARGUMENT[:8], TARGET[:8])}
        addresses |= {f"/admin/jobs/{model._meta.model_name}/" for model in _models()}
        addresses |= {"/admin/", "/runs/?state=open", "/runs/?state=problem", f"/runs/?q={RESULT}"}
        # Its own words come back in the form of a search.
        return {
            f"{who}: {address}": leaks.page(self.site + address, **cookie)
            for address in sorted(addresses)
            if TARGET[:8] not in address and ARGUMENT[:8] not in address and RESULT not in address
        }

    def answers_to(self, who: str) -> dict[str, bytes]:
        """Return the answers of all operations of the API that read, to one token."""
        login = {"Authorization": f"Bearer {self.tokens[who]}"}
        paths = set()
        for operation in OPERATIONS:
            if operation.method != "get":
                continue
            for run in self.runs.values():
                keys = dict.fromkeys(operation.parameters, "1")
                keys |= {"run_id": run, "slug": "acme", "owner": "acme"}
                path = operation.path.format(**keys)
                path = path if path.startswith("/api") else f"/api/v1{path}"
                paths |= {path, f"{path}?with_arguments=true"} if "export" in path else {path}
        return {f"{who}: {path}": leaks.page(self.site + path, **login) for path in sorted(paths)}

    def shown_by_flower(self) -> dict[str, bytes]:
        """Return Flower's pages and its API, of the list and of each run."""
        login = {"Authorization": f"Basic {b64encode(b'ann:secret').decode()}"}
        paths = ["/", "/workers", TABLE, "/broker", "/metrics", "/api/workers", "/api/tasks"]
        paths += [f"/{each}/{run}" for run in self.runs.values() for each in _OF_TASK]
        # It has heard of all: a task that is unknown is a 404.
        assert b"flows.secret" in leaks.page(f"{self.flower}/api/tasks", **login)
        return {f"flower {path}": leaks.page(self.flower + path, **login) for path in paths}

    def _worker(self) -> str:
        [(found,)] = self.here.servers.sql("SELECT id::text FROM jobs_worker LIMIT 1")
        return str(found)


TABLE: Final = (
    "/tasks/datatable?draw=1&start=0&length=100&order[0][column]=0&order[0][dir]=asc"
    "&columns[0][data]=name"
)
"""The rows of Flower's page of tasks, which its script asks for."""
_OF_TASK: Final = ("task", "api/task/info", "api/task/result")


def _models() -> list[Any]:
    return [model for model in apps.get_app_config("jobs").get_models() if model._meta.managed]
