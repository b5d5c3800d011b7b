"""What a member hands back: figures, each with what it is compared to. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table.

    A target is for the ratio to the baseline, or, with `of_figure`, for the figure itself;
    without one the row only informs. `ratios` are those of the single rounds, if both sides took
    turns: their median counts, since the speed of a machine changes between rounds. `samples` are
    the single rounds, by what was measured.
    """

    what: str
    unit: str
    figure: float
    baseline: float | None = None
    against: str = ""
    at_least: float | None = None
    at_most: float | None = None
    of_figure: bool = False
    ratios: Sequence[float] = ()
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The figure as a multiple of its baseline."""
        if self.ratios:
            return median(self.ratios)
        return self.figure / self.baseline if self.baseline else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lowest and the highest ratio of a round; None if the sides took no turns."""
        return (min(self.ratios), max(self.ratios)) if self.ratios else None

    @property
    def target(self) -> str:
        """The target as it is written in the table."""
        if self.at_least is None and self.at_most is None:
            return ""
        unit = f" {self.unit}" if self.of_figure else "×"
        sign, limit = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return f"{sign} {limit:g}{unit}"

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        value = self.figure if self.of_figure else self.ratio
        if not self.target or value is None:
            return None
        is_low = self.at_least is not None and value < self.at_least
        is_high = self.at_most is not None and value > self.at_most
        return not (is_low or is_high)

    def as_json(self, member: str) -> dict[str, Any]:
        """Return the row for the JSON file."""
        found = {"ratio": self.ratio, "spread": self.spread, "target": self.target}
        return {"member": member, **asdict(self), **found, "is_met": self.is_met}


def compared(
    figures: Sequence[float],
    baselines: Sequence[float],
    *,
    what: str,
    unit: str,
    against: str,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Row:
    """Return the row of two series whose rounds took turns, or of one beside a fixed figure.

    Figure and baseline are medians; the ratio is the median of the rounds' ratios.
    """
    took_turns = len(figures) == len(baselines)
    pairs = zip(figures, baselines, strict=True) if took_turns else ()
    return Row(
        what=what,
        unit=unit,
        figure=median(figures),
        baseline=median(baselines),
        against=against,
        at_least=at_least,
        at_most=at_most,
        ratios=[one / other for one, other in pairs],
        samples={what: figures, against: baselines},
    )
