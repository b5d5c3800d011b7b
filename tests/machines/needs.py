"""What several machines need of the one that plays them."""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.contrast.installation import FAKETIME
from tests.machines.servers import BINARIES

PACKAGES: Final = {
    "iproute2": ("ip",),
    "nftables": ("nft",),
    "redis-server": ("redis-server",),
    "postgresql": tuple(str(BINARIES[-1] / name) for name in ("postgres", "pg_basebackup"))
    if BINARIES
    else ("postgres",),
    "libfaketime": (FAKETIME,),
}
"""Debian's packages, and the programs and libraries of theirs that are used."""


@functools.cache
def lacking() -> str:
    """Return what is missing, as the reason of a skip; nothing if the machines can be made."""
    if os.geteuid() != 0:
        return "several machines need root"
    if missing := ", ".join(_missing_packages()):
        return f"several machines need Debian's {missing} (see .ci/run)"
    trial = "ip link add name trial type bridge && nft add table inet trial"
    words = ["unshare", "--net", "sh", "-c", trial]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"the kernel makes no machines: {done.stderr.strip()}" if done.returncode else ""


def _missing_packages() -> Iterator[str]:
    for package, paths in PACKAGES.items():
        if not all(Path(path).is_file() or shutil.which(path) for path in paths):
            yield package
