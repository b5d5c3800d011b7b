"""The verdict: the findings, under a name for each kind of broken promise."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

LISTED = 10


class Finding(NamedTuple):
    """One broken promise: the run or submit it is about, and the fact."""

    subject: str
    fact: str


@dataclass(kw_only=True)
class Verdict:
    """Every finding by kind, and the figures of the scene; `ok` when nothing was found."""

    found: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    """By kind, also by those of which nothing was found. Each rule says what its kind means."""

    figures: dict[str, int] = field(default_factory=dict)

    @property
    def findings(self) -> dict[str, list[Finding]]:
        """The kinds of which something was found."""
        return {name: found for name, found in self.found.items() if found}

    @property
    def ok(self) -> bool:
        return not self.findings

    def report(self) -> str:
        """Return the verdict as text, with the first ten findings of each kind."""
        figures = ", ".join(f"{count:,} {name}" for name, count in self.figures.items())
        lines = [f"verdict: {'clean' if self.ok else 'BAD'} ({figures})"]
        for name, found in self.findings.items():
            lines.append(f"{name.replace('_', ' ')}: {len(found):,}")
            lines += [f"  {finding.subject}  {finding.fact}" for finding in found[:LISTED]]
            if len(found) > LISTED:
                lines.append(f"  and {len(found) - LISTED:,} more")
        return "\n".join(lines)
