"""What the commands read: numbers within limits."""

from argparse import ArgumentTypeError

import pytest

from jobs.management.arguments import number, whole


@pytest.mark.parametrize(
    "text", ["0", "65536", "-1", "1.5", "many", "", "²", "9" * 5_000, "00006553599999"]
)
def test_what_is_no_whole_number_within_them_is_refused(text: str) -> None:
    """With the limits, also where it is too long to be read."""
    with pytest.raises(ArgumentTypeError, match="from 1 to 65535"):
        whole(1, 65_535)(text)


def test_numbers_have_limits_too() -> None:
    """Both are included; what is none is refused."""
    read = number(0.1, 3600)
    assert [read(text) for text in ("0.1", "3600")] == [0.1, 3600]
    for text in ("0.09", "3601", "nan", "soon", ""):
        with pytest.raises(ArgumentTypeError, match=r"from 0\.1 to 3600"):
            read(text)
