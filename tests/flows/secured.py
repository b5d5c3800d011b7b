"""A Redis over TCP with users and passwords, on the embedded server's program."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import redis
from django.conf import settings

from config.embedded.accounts import server_account
from config.embedded.binaries import redis_folder
from config.embedded.places import Places
from jobs.management.stack.stack import free_port
from tests.waiting import answers, wait_for

ADMIN = "admin-s3cret"


@dataclass
class Secured:
    """A Redis where `admin` may do everything, and others what their rules allow."""

    port: int
    admin: redis.Redis

    def url(self, user: str, password: str) -> str:
        return f"redis://{user}:{password}@127.0.0.1:{self.port}/0"

    def client(self, user: str, password: str) -> redis.Redis:
        return redis.Redis(port=self.port, username=user, password=password)


@contextmanager
def secured(users: Sequence[str]) -> Iterator[Secured]:
    """Run a Redis with these lines of an ACL file and the user `admin`, for the scene."""
    program = redis_folder(Places(settings.STATE_DIR), account=server_account()) / "redis-server"
    port = free_port(0)
    lines = ["user default off", f"user admin on >{ADMIN} ~* &* +@all", *users]
    config = "\n".join([f"port {port}", "bind 127.0.0.1", 'save ""', *lines])
    process = subprocess.Popen(
        [str(program), "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    admin = redis.Redis(port=port, username="admin", password=ADMIN)
    try:
        assert process.stdin is not None
        process.stdin.write(config)
        process.stdin.close()
        wait_for(lambda: answers(admin), what="Redis to answer")
        yield Secured(port, admin)
    finally:
        admin.close()
        process.kill()
        process.wait()
