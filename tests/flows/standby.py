"""A standby of a scene's PostgreSQL, which follows it and takes no writes."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from config.embedded.accounts import server_account
from config.embedded.binaries import postgres_folder
from config.embedded.places import Places
from tests.debian import as_account, connects, own_folder, running
from tests.waiting import wait_for


@contextmanager
def standby(url: str) -> Iterator[str]:
    """Run a standby of the server of this URL; yield the URL of its copy of the database."""
    programs = postgres_folder(Places(settings.STATE_DIR), account=server_account())
    with own_folder() as (folder, account):
        data = folder / "data"
        # With -R it becomes a standby of the server that it copies.
        copy = [programs / "pg_basebackup", "-R", "--checkpoint=fast", "-D", data, "-d", url]
        subprocess.run(copy, check=True, **as_account(account, folder))
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(folder),
            "max_connections": "200",
        }
        words = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        copied = f"postgresql://postgres@/fairshift?host={folder}&port=5432"
        with running([str(programs / "postgres"), "-D", str(data), *words], folder, account):
            wait_for(lambda: connects(copied), seconds=30, what="the standby answers")
            yield copied
