"""The Dockerfile, read into its instructions."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.commands import PROJECT

DOCKERFILE: Final = PROJECT / "compose/Dockerfile"


@dataclass(frozen=True)
class Instruction:
    """One instruction of a stage, such as RUN, and its text in one line."""

    stage: str
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def source_stage(self) -> str:
        """The stage that a COPY copies from; empty for the checkout."""
        first = self.words[0]
        return first.removeprefix("--from=") if first.startswith("--from=") else ""

    @property
    def paths(self) -> list[str]:
        """The paths of a COPY; the last one is where the others go."""
        return [word for word in self.words if not word.startswith("--")]


def instructions() -> Iterator[Instruction]:
    """Yield all instructions in order. The last stage, which has no name, is `final`."""
    lines = [
        line
        for line in DOCKERFILE.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    stage = ""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, text = line.partition(" ")
        if name == "FROM":
            stage = text.partition(" AS ")[2] or "final"
        yield Instruction(stage, name, " ".join(text.split()))
