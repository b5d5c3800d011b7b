"""Rooms: what a container is to Compose, made of the kernel's namespaces, without an engine.

A room has a root of its own: the programs of this machine under /usr, and of an image what the
Dockerfile put there. It has the user, the capabilities, the read-only root, the tmpfs and the
volumes that Compose states. All rooms share a network in which nothing but they can be reached.
Needs root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.commands import Done

Words = Sequence[str]

# As in the images of Python: the interpreter is below /usr/local.
BUILD: Final = """
set -eu
mount -t tmpfs -o mode=755 root "$ROOM"
cd "$ROOM"
mkdir usr etc dev proc tmp srv opt var run
ln -s /run var/run
mount --rbind /usr usr
mount --rbind /dev dev
mount --rbind /proc proc
for each in bin sbin lib lib32 lib64; do
    if [ -L "/$each" ]; then cp -a "/$each" "$each"; fi
done
if [ -e "$PYTHON/bin/python" ]; then
    mount --bind "$PYTHON" usr/local
else
    mount -t tmpfs local usr/local
    mkdir usr/local/bin
    ln -s "$PYTHON/bin/python3" usr/local/bin/python
fi
for each in etc opt srv tmp; do mount --bind "$IMAGE/$each" "$each"; done
"""
FURNISH: Final = """
mount --bind "$HOSTS" etc/hosts
hostname "$ROOM_NAME"
"""
CLOSE: Final = """
for each in usr usr/local etc opt srv ''; do mount -o remount,bind,ro "$ROOM/$each"; done
"""
ENTER: Final = """
cd /
exec env -u IMAGE -u ROOM -u PYTHON -u HOSTS -u ROOM_NAME chroot "$ROOM" setpriv "$@"
"""

CONFIGURATION: Final = (
    *("passwd", "group", "shadow", "gshadow", "login.defs", "default/useradd"),
    *("hosts", "localtime", "nsswitch.conf", "resolv.conf", "ld.so.conf", "ld.so.conf.d"),
    *("ssl", "ca-certificates.conf", "pip.conf", "xdg/pip"),
)
"""Of /etc: users, names, certificates, and where pip finds packages."""

DEPRIVED: Final = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--clear-groups")


def may_make_rooms() -> bool:
    """Say whether this user and machine allow it."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return False
    trial = ["unshare", "--mount", "--net", "--uts", "mount", "-t", "tmpfs", "trial", "/mnt"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


def new_image(folder: Path) -> Path:
    """Return a folder for what an image has of its own; it begins as a copy of Debian's /etc."""
    for name in ("etc", "opt", "srv", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "tmp").chmod(0o1777)
    for name in CONFIGURATION:
        source, target = Path("/etc") / name, folder / "etc" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        elif source.exists():
            shutil.copy(source, target)
    return folder


def build(image: Path, room: Path, words: Words, *, environ: Mapping[str, str], at: str) -> Done:
    """Run a program as root in an image that it may change, on the network of this machine."""
    inside = ["env", f"--chdir={at}", *words]
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", BUILD + 'ldconfig -r "$ROOM"\n' + ENTER, "sh", *inside],
        env={**environ, **_for_room(image, room)},
        capture_output=True,
        text=True,
        check=False,
    )


def _for_room(image: Path, room: Path) -> dict[str, str]:
    room.mkdir(exist_ok=True)
    return {"IMAGE": str(image), "ROOM": str(room), "PYTHON": sys.base_prefix}


@dataclass(frozen=True)
class Network:
    """A network of its own, kept by a process that does nothing else."""

    keeper: subprocess.Popen[bytes]

    def enter(self, *words: str) -> list[str]:
        """Return a command that runs in this network."""
        return ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", *words]


@contextmanager
def network() -> Iterator[Network]:
    """Make a network with a loopback alone: all services are at 127.0.0.1."""
    code = ["sh", "-c", "ip link set lo up && echo up && exec sleep infinity"]
    keeper = subprocess.Popen(
        ["setpriv", "--pdeathsig=KILL", "unshare", "--net", *code], stdout=subprocess.PIPE
    )
    assert keeper.stdout is not None
    assert keeper.stdout.readline() == b"up\n"
    try:
        yield Network(keeper)
    finally:
        keeper.kill()
        keeper.wait()


@dataclass(frozen=True)
class Furniture:
    """What Compose states of one service, as commands of the shell that furnish its room."""

    user: str
    environment: dict[str, str]
    commands: str

    @classmethod
    def of(cls, service: Mapping[str, Any], *, folder: Path) -> Furniture:
        """Read a service of the resolved file; named volumes become folders in `folder`."""
        lines = []
        user, _, group = service["user"].partition(":")
        for mount in service.get("volumes") or ():
            source = Path(mount["source"])
            if mount["type"] == "volume":
                source = folder / mount["source"]
                source.mkdir(exist_ok=True)
                os.chown(source, int(user), int(group))
            target = mount["target"].lstrip("/")
            make = "mkdir -p" if source.is_dir() else f"mkdir -p $(dirname {target}); touch"
            lines += [f"{make} {target}", f"mount --bind '{source}' {target}"]
            if mount.get("read_only"):
                lines.append(f"mount -o remount,bind,ro {target}")
        for target in service.get("tmpfs") or ():
            options = "mode=1777,nosuid,nodev,noexec"
            lines += [f"mkdir -p .{target}", f"mount -t tmpfs -o {options} tmpfs .{target}"]
        given = {
            name: value
            for name, value in (service.get("environment") or {}).items()
            if value is not None
        }
        return cls(service["user"], given, "\n".join(lines) + "\n")


class Room:
    """One running container of a service."""

    def __init__(
        self,
        name: str,
        words: Words,
        *,
        furniture: Furniture,
        image: Path,
        place: Network,
        folder: Path,
        hosts: Path,
        environ: Mapping[str, str],
        at: str,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._environ = {**environ, **furniture.environment}
        user, _, group = furniture.user.partition(":")
        self._as_user = [f"--reuid={user}", f"--regid={group}", *DEPRIVED]
        # A test run that is killed leaves nothing behind.
        as_child = [*self._as_user, "--pdeathsig=KILL"]
        script = BUILD + FURNISH + furniture.commands + CLOSE + ENTER
        shell = ["unshare", "--mount", "--uts", "sh", "-c", script, "sh"]
        own = _for_room(image, folder / f"{name}-room")
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                place.enter(*shell, *as_child, "env", f"--chdir={at}", *words),
                env={**self._environ, **own, "HOSTS": str(hosts), "ROOM_NAME": name},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def run(self, *words: str, seconds: float = 60) -> Done:
        """Run a program in the room, as its user and with its environment: `docker exec`."""
        target = ["nsenter", f"--target={self.process.pid}", "--mount", "--uts", "--net"]
        return subprocess.run(
            [*target, "--root", "--wd", "setpriv", *self._as_user, *words],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def end(self) -> str:
        """Return the last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-40:]
        return "\n".join([f"--- {self.name}, exit status {self.process.poll()}", *lines])

    def kill(self) -> None:
        """End it and all its children at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
