"""jobs/api/csv_cells: what a spreadsheet gets is text."""

from typing import Any

import pytest

from jobs.api.csv_cells import harmless


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", " =", " \n \u00a0+", "＝"])
def test_a_formula_becomes_text(first: str) -> None:
    """Every beginning that spreadsheets run; some drop spaces and line feeds before they look."""
    assert harmless(f"{first}HYPERLINK(1)") == f"'{first}HYPERLINK(1)"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (-5, "-5"),
        (1.5, "1.5"),
        (True, "true"),
        ("a=b", "a=b"),
        ({"a": "=1"}, '{"a": "=1"}'),
    ],
)
def test_other_values_stay(value: Any, cell: str) -> None:
    """Numbers stay numbers; containers are JSON."""
    assert harmless(value) == cell
