"""A standby of a scene's PostgreSQL, which follows it and takes no writes."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from config.embedded.accounts import server_account
from config.embedded.binaries import postgres_folder
from config.embedded.places import Places
from tests.state_dirs import new_state_dir
from tests.waiting import wait_for


@contextmanager
def standby(url: str) -> Iterator[str]:
    """Run a standby of the server of this URL; yield the URL of its copy of the database."""
    account = server_account()
    programs = postgres_folder(Places(settings.STATE_DIR), account=account)
    folder = new_state_dir()
    account.give(folder)
    data = Path(folder, "data")
    as_server: dict[str, Any] = {
        "user": account.uid,
        "group": account.gid,
        "extra_groups": account.extra_groups,
        "cwd": folder,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    # With -R it becomes a standby of the server that it copies.
    copy = [programs / "pg_basebackup", "-R", "--checkpoint=fast", "-D", data, "-d", url]
    subprocess.run(copy, check=True, **as_server)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(folder),
        "max_connections": "200",
    }
    words = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
    process = subprocess.Popen([programs / "postgres", "-D", data, *words], **as_server)
    copied = f"postgresql://postgres@/fairshift?host={folder}&port=5432"

    def answers() -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(copied).close()
            return True
        return False

    try:
        wait_for(answers, seconds=30, what="the standby answers")
        yield copied
    finally:
        process.terminate()
        process.wait(200)
        shutil.rmtree(folder)
