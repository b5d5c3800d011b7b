"""Starting a server as a child that cannot outlive its keeper."""

import signal
import subprocess
from pathlib import Path
from typing import BinaryIO

from config.embedded.accounts import Account
from jobs.management.stack.tether import die_with_parent

# No locale and no library path of the caller: the same start everywhere.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def spawn(
    command: list[str],
    *,
    account: Account,
    log: BinaryIO,
    folder: Path,
    death_signal: signal.Signals,
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a server that gets `death_signal` when this process dies, however it dies."""
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=log,
        stderr=log,
        cwd=folder,
        env=ENVIRONMENT,
        start_new_session=True,
        preexec_fn=die_with_parent(death_signal),
        user=account.uid,
        group=account.gid,
        extra_groups=account.extra_groups,
    )


def run(
    command: list[str], *, account: Account, log: BinaryIO, folder: Path, text: str = ""
) -> int:
    """Run a command to its end and return its exit status."""
    process = spawn(
        command,
        account=account,
        log=log,
        folder=folder,
        death_signal=signal.SIGKILL,
        stdin=subprocess.PIPE,
    )
    process.communicate(text.encode())
    return process.returncode


def tail(log: Path, *, lines: int = 15) -> str:
    """Return the last lines of a log, indented."""
    try:
        text = log.read_bytes()[-20_000:].decode(errors="replace")
    except OSError as error:
        return f"  (unreadable: {error.strerror})"
    return "\n".join(f"  {line}" for line in text.splitlines()[-lines:])
