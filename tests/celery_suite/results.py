"""The outcome of each test, and how two sides compare."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

BAD: Final = frozenset({"failed", "error"})


@dataclass(frozen=True)
class Result:
    """The outcome of a test, and the first line of its error."""

    outcome: str
    error: str = ""

    @property
    def is_bad(self) -> bool:
        return self.outcome in BAD


NOT_RUN: Final = Result("not run")


def read_results(xml: Path) -> dict[str, Result]:
    """Return each test's result by its pytest node id, from a JUnit file of pytest's."""
    found: dict[str, Result] = {}
    for case in ET.parse(xml).iter("testcase"):
        test = _node_id(case.get("classname", ""), case.get("name", ""))
        result = _result(case)
        # A test that fails and whose clean-up fails, too, has two entries.
        if test not in found or result.is_bad:
            found[test] = result
    return found


def _node_id(classname: str, name: str) -> str:
    module, _, test_class = classname.partition(".test_")
    file, _, test_class = f"test_{test_class}".partition(".")
    path = f"{module.replace('.', '/')}/{file}.py"
    return "::".join(part for part in (path, test_class, name) if part)


def _result(case: ET.Element) -> Result:
    for tag, outcome in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
        if (found := case.find(tag)) is not None:
            is_expected = found.get("type") == "pytest.xfail"
            error = (found.get("message") or "").strip().partition("\n")[0]
            return Result("xfailed" if is_expected else outcome, error)
    return Result("passed")


def differing(stock: Mapping[str, Result], fair: Mapping[str, Result]) -> list[str]:
    """Return the tests whose outcomes differ, in the order of the suite."""
    return [
        test
        for test in dict.fromkeys([*stock, *fair])
        if stock.get(test, NOT_RUN).outcome != fair.get(test, NOT_RUN).outcome
    ]


@dataclass(frozen=True)
class Comparison:
    """Two sides of a suite, after the tests that differed have run once more."""

    totals: dict[str, Counter[str]]
    differences: list[tuple[str, Result, Result]]
    unstable: list[str]
    bad_on_both: list[tuple[str, Result]]
    named: Mapping[str, str]

    @property
    def unnamed(self) -> list[str]:
        """The tests that differ and have no reason."""
        return [test for test, _, _ in self.differences if test not in self.named]

    @property
    def ok(self) -> bool:
        """Say whether tests ran, and whether each difference has a reason."""
        return all(counts.total() for counts in self.totals.values()) and not self.unnamed

    def report(self) -> str:
        """Return the comparison as text."""
        lines = [
            f"{side}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
            for side, counts in self.totals.items()
        ]
        lines += [
            "",
            f"{len(self.differences)} differ, {len(self.unnamed)} of them without a reason.",
            *(
                f"- {test}: stock {stock.outcome}, fair {fair.outcome}"
                f" ({fair.error or stock.error}); reason: {self.named.get(test, 'none')}"
                for test, stock, fair in self.differences
            ),
        ]
        if self.unstable:
            lines += ["", "Differed in the suite, not when run alone:"]
            lines += [f"- {test}" for test in self.unstable]
        if self.bad_on_both:
            lines += ["", "Fail on stock, too:"]
            lines += [f"- {test}: {result.error}" for test, result in self.bad_on_both]
        return "\n".join(lines)


def compare(
    found: Mapping[str, Mapping[str, Result]],
    *,
    alone: Mapping[str, Mapping[str, Result]],
    named: Mapping[str, str],
) -> Comparison:
    """Compare the sides `stock` and `fair`; a test that ran alone counts as it ended there."""
    last = {side: {**found[side], **alone[side]} for side in found}
    stock, fair = last["stock"], last["fair"]
    differences = differing(stock, fair)
    return Comparison(
        totals={side: Counter(result.outcome for result in last[side].values()) for side in last},
        differences=[
            (test, stock.get(test, NOT_RUN), fair.get(test, NOT_RUN)) for test in differences
        ],
        unstable=[
            test for test in differing(found["stock"], found["fair"]) if test not in differences
        ],
        bad_on_both=[
            (test, result)
            for test, result in stock.items()
            if result.is_bad and fair.get(test, NOT_RUN).is_bad
        ],
        named=named,
    )
