"""compose/systemd: the same programs as compose.yaml, as units that systemd accepts."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.commands import PROJECT, ran

FOLDER: Final = PROJECT / "compose/systemd"
UNITS: Final = {
    "fairshift": "fairshift",
    "fairshift-web": "web",
    "fairshift-worker@": "worker",
    "fairshift-system": "system",
    "fairshift-notices": "notices",
    "fairshift-beat": "beat",
    "fairshift-migrate": "migrate",
}
PLACES: Final = re.compile("--(bind|hostname)=.*")
"""Options that differ: where the site listens, and names of workers."""


def unit(name: str) -> str:
    return (FOLDER / f"{name}.service").read_text()


def command(name: str) -> list[str]:
    """Return the words of a unit's program, without its folder."""
    [line] = re.findall(r"^ExecStart=((?:.*\\\n)*.*)$", unit(name), re.MULTILINE)
    first, *words = shlex.split(line.replace("\\\n", " "))
    return [Path(first).name, *words]


@pytest.mark.parametrize("name", UNITS)
def test_a_program_is_that_of_compose(name: str, services: dict[str, Any]) -> None:
    """The same command; a worker's unit gives it a name of its own."""
    ours = [word for word in command(name) if not PLACES.fullmatch(word)]
    theirs = [word for word in services[UNITS[name]]["command"] if not PLACES.fullmatch(word)]
    assert ours == (theirs[2:] if theirs[:2] == ["python", "-m"] else theirs)


@pytest.mark.parametrize("name", [name for name in UNITS if name != "fairshift-migrate"])
def test_a_program_ends_its_runs_and_starts_again(name: str) -> None:
    """SIGTERM comes to the main process alone; what has ended by itself is started again."""
    assert "\nKillMode=mixed\n" in unit(name) and "\nRestart=always\n" in unit(name)
    assert "\nNoNewPrivileges=yes\n" in unit(name) and "\nUser=fairshift\n" in unit(name)


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
@pytest.mark.parametrize("name", [*UNITS, "wrong"])
def test_systemd_accepts_the_unit(name: str, tmp_path: Path) -> None:
    """By its own reader; a key that it does not know would be refused."""
    text = unit("fairshift-beat" if name == "wrong" else name)
    if name == "wrong":
        text = text.replace("KillMode=", "KilMode=")
    shutil.copy(FOLDER / "fairshift.target", tmp_path)
    placed = tmp_path / f"{name.replace('@', '@one')}.service"
    # The programs are not installed here.
    placed.write_text(re.sub(r"/opt/fairshift/bin/\w+", "/bin/true", text))
    done = ran("systemd-analyze", "verify", str(placed))
    assert (done.returncode == 0 and not done.stderr) == (name != "wrong"), done.stderr
