"""The services of compose.yaml in rooms; Debian's servers stand for those of images."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.commands import Done
from tests.compose.image import PATH, Image
from tests.compose.resolved import in_order, resolved
from tests.compose.rooms import Furniture, Network, Room, network, new_image

POSTGRES: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
ENTRYPOINT: Final = """
set -eu
export PGDATA=/var/lib/postgresql/data
if [ ! -e "$PGDATA/PG_VERSION" ]; then
    printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username="$POSTGRES_USER" --pwfile=/tmp/password $POSTGRES_INITDB_ARGS
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    pg_ctl --options='-c listen_addresses=' --wait start
    createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
    for script in /docker-entrypoint-initdb.d/*.sh; do "$script"; done
    pg_ctl --mode=fast --wait stop
fi
exec postgres -c listen_addresses='*'
"""
"""What the image of PostgreSQL does at the start of a container."""
ONE_SHOT: Final = ("migrate", "grants")
"""Services that end."""
ABSENT: Final = frozenset({"grafana"})
"""Services that no package of Debian can stand for."""
HEALTHY_SECONDS: Final = 600.0


class Installation:
    """The services of a resolved file, in rooms on one network."""

    def __init__(
        self,
        checkout: Path,
        *files: str,
        profile: str,
        image: Image,
        place: Network,
        folder: Path,
    ) -> None:
        self.services: dict[str, Any] = resolved(checkout, *files, profile=profile)["services"]
        self.rooms: dict[str, Room] = {}
        self._image, self._place, self._folder = image, place, folder
        self._debian = new_image(folder / "debian")
        with (self._debian / "etc/passwd").open("a") as users:
            users.write("compose:x:999:999::/tmp:/bin/sh\n")
        self._hosts = folder / "hosts"
        self._hosts.write_text(f"127.0.0.1 localhost {' '.join(self.services)}\n")

    def up(self, *names: str) -> None:
        """Start services in order, each when Compose would; all of them without names."""
        for name in in_order(self.services):
            if name not in ABSENT and (not names or name in names):
                for other, wanted in (self.services[name].get("depends_on") or {}).items():
                    self._wait(other, wanted["condition"])
                for number in range(1, self._replicas(name) + 1):
                    self.start(name, number)

    def _replicas(self, name: str) -> int:
        return int((self.services[name].get("deploy") or {}).get("replicas", 1))

    def _wait(self, name: str, condition: str) -> None:
        for room in self.of(name):
            if condition == "service_healthy":
                self.wait_healthy(room)
            elif condition == "service_completed_successfully":
                assert room.process.wait(HEALTHY_SECONDS) == 0, room.end()

    def of(self, service: str) -> list[Room]:
        """Return the rooms of a service."""
        return [room for name, room in self.rooms.items() if name.rpartition("-")[0] == service]

    def start(self, service: str, number: int = 1) -> Room:
        """Start one replica."""
        facts, name = self.services[service], f"{service}-{number}"
        ours = facts["image"].startswith("fairshift")
        image = self._image if ours else Image(self._debian, {"PATH": f"{POSTGRES[-1]}:{PATH}"})
        room = Room(
            name,
            self._words(service, facts),
            furniture=Furniture.of(facts, folder=self._folder),
            image=image.folder,
            place=self._place,
            folder=self._folder,
            hosts=self._hosts,
            environ={"HOME": "/tmp", **image.environ},
            at=image.at,
        )
        self.rooms[name] = room
        return room

    @staticmethod
    def _words(service: str, facts: Mapping[str, Any]) -> Sequence[str]:
        if service == "postgres":
            return ["sh", "-c", ENTRYPOINT]
        return [*(["prometheus"] if service == "prometheus" else []), *facts["command"]]

    def health(self, room: Room) -> Done:
        """Run the health check of a room's service, as Compose states it."""
        kind, *words = self.services[room.name.rpartition("-")[0]]["healthcheck"]["test"]
        return room.run(*(["/bin/sh", "-c"] if kind == "CMD-SHELL" else []), *words)

    def wait_healthy(self, room: Room) -> None:
        """Wait until the health check passes."""
        deadline = time.monotonic() + HEALTHY_SECONDS
        while (done := self.health(room)).returncode != 0:
            assert room.process.poll() is None, room.end()
            said = done.stdout + done.stderr
            assert time.monotonic() < deadline, f"{said}\n{room.end()}"
            time.sleep(0.3)

    def outside(self, *words: str) -> list[str]:
        """Return a command of a caller that reaches the services by the network alone."""
        return self._place.enter(*words)

    def logs(self) -> str:
        """Return all that the rooms have written."""
        return "\n".join(room.log.read_text(errors="replace") for room in self.rooms.values())


@contextmanager
def installed(
    checkout: Path, *files: str, profile: str, image: Image, folder: Path
) -> Iterator[Installation]:
    """Make the rooms' network; at the end, nothing of the installation is left."""
    folder.mkdir()
    with ExitStack() as ending:
        place = ending.enter_context(network())
        installation = Installation(
            *(checkout, *files), profile=profile, image=image, place=place, folder=folder
        )
        ending.callback(lambda: [room.kill() for room in reversed(installation.rooms.values())])
        yield installation
