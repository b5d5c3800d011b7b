"""jobs/admin/kit/json_object.py: a JSON object as a person types it."""

import time

import pytest

from jobs.admin.kit.json_object import parsed


def test_a_name_that_is_given_twice_is_told() -> None:
    """One value of two would be lost in silence."""
    with pytest.raises(ValueError, match="host is given twice"):
        parsed('{"port": 1, "host": "a", "host": "b"}')


def test_many_names_cost_no_time() -> None:
    """A megabyte of them, compared each with each other, would take minutes."""
    text = "".join(f'"{number}": 1, ' for number in range(100_000))
    began = time.process_time()
    with pytest.raises(ValueError, match="99999 is given twice"):
        parsed(f'{{{text}"99999": 2}}')
    assert time.process_time() - began < 5
