"""The verdict: the findings, under a name for each kind of broken promise."""

from dataclasses import dataclass, field, fields
from typing import NamedTuple

LISTED = 10


class Finding(NamedTuple):
    """One broken promise: the run or submit it is about, and the fact."""

    subject: str
    fact: str


@dataclass(kw_only=True)
class Verdict:
    """Every finding by kind, and the figures of the scene; `ok` when nothing was found."""

    # Committed, but not ended; or ended without ever having been started.
    lost: list[Finding] = field(default_factory=list)
    # Exists or ran although its submit failed, was rolled back or never was.
    ghosts: list[Finding] = field(default_factory=list)
    # A submit that is neither fully there nor fully absent.
    torn: list[Finding] = field(default_factory=list)
    # Started more often than once, plus lost leases, plus retries.
    excess_starts: list[Finding] = field(default_factory=list)
    # Two bodies of one run at the same time, without a frozen or killed process.
    overlaps: list[Finding] = field(default_factory=list)
    # The standing outcome is not that of the newest token.
    stale: list[Finding] = field(default_factory=list)
    # The history does not replay to the state by allowed moves.
    history: list[Finding] = field(default_factory=list)
    # Tokens that do not increase, or that were never issued.
    tokens: list[Finding] = field(default_factory=list)
    # Not exactly one ended attempt for each token.
    attempts: list[Finding] = field(default_factory=list)
    # A due time that has neither its run nor a record that it was missed.
    unaccounted: list[Finding] = field(default_factory=list)
    # A run of a job that was not due then.
    not_due: list[Finding] = field(default_factory=list)
    # Two runs for one due time, or a run and a record, or two records.
    due_twice: list[Finding] = field(default_factory=list)
    # A record of missed due times that does not say what was missed, or why.
    misrecorded: list[Finding] = field(default_factory=list)
    # Admitted while the calendars of its owner were closed, or about to close.
    admitted_outside: list[Finding] = field(default_factory=list)
    # A body that began after the last moment that its admission left it.
    started_late: list[Finding] = field(default_factory=list)
    # A body that began while calendars were closed that never changed.
    started_outside: list[Finding] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)

    @property
    def findings(self) -> dict[str, list[Finding]]:
        """The kinds of which something was found."""
        kinds = {kind.name: getattr(self, kind.name) for kind in fields(self)}
        del kinds["figures"]
        return {name: found for name, found in kinds.items() if found}

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
