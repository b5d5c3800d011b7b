"""The Dockerfile, replayed without Docker: each stage in a root of its own."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Final

import pip

from tests.compose.dockerfile import Instruction, instructions
from tests.compose.rooms import build, new_image

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Of the images of Python."""
OF_THE_NETWORK: Final = ("PIP_", "SSL_", "REQUESTS_", "CURL_", "HTTP_", "HTTPS_", "NO_PROXY")
"""Beginnings of variables by which this machine reaches its package index."""


@dataclass
class Image:
    """One stage: its own files, and what containers get from it."""

    folder: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": PATH, "HOME": "/tmp"})
    at: str = "/"
    user: str = "0:0"


def replay(checkout: Path, folder: Path) -> Image:
    """Build all stages from this checkout, and return the last; a RUN that fails fails the test."""
    stages: dict[str, Image] = {}
    for each in instructions():
        if each.name == "FROM":
            stages[each.stage] = Image(new_image(folder / each.stage))
        else:
            _follow(each, stages[each.stage], stages=stages, checkout=checkout)
    return stages["final"]


def _follow(
    each: Instruction, image: Image, *, stages: Mapping[str, Image], checkout: Path
) -> None:
    match each.name:
        case "ENV":
            known = image.environ
            given = (Template(word).safe_substitute(known).split("=", 1) for word in each.words)
            image.environ = known | dict(given)
        case "WORKDIR":
            image.at = each.text
            (image.folder / each.text.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "USER":
            image.user = each.text
        case "COPY":
            *sources, target = each.paths
            root = stages[each.source_stage].folder if each.source_stage else checkout
            for source in sources:
                _copy(
                    root / source.lstrip("/"),
                    image.folder / (Path(image.at) / target).relative_to("/"),
                )
        case "RUN":
            _run(each.text, image)
        case _:
            raise AssertionError(f"{each.name} is not replayed")


def _copy(source: Path, target: Path) -> None:
    """Copy as Docker does: of a folder its content; a file into a target that is a folder."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def _run(command: str, image: Image) -> None:
    # Debian's Python has no pip; the images of Python have.
    with_pip = image.folder / "tmp/with-pip"
    shutil.copytree(Path(pip.__file__).parent, with_pip / "pip", dirs_exist_ok=True)
    outer = {
        name: value for name, value in os.environ.items() if name.upper().startswith(OF_THE_NETWORK)
    }
    environ = {**outer, "PYTHONPATH": "/tmp/with-pip", **image.environ}
    room = image.folder.parent / "building"
    done = build(image.folder, room, ["sh", "-c", command], environ=environ, at=image.at)
    assert done.returncode == 0, f"RUN {command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    shutil.rmtree(with_pip)
