"""Policies are refused where they are declared, by name and with their limits."""

import pytest

from jobs.catalog.policies import refuse_unknown
from jobs.core.errors import OptionError


def test_an_unknown_option_is_refused_with_the_near_miss() -> None:
    """A misspelt option is never ignored in silence."""
    with pytest.raises(OptionError, match=r"max_attemps: is unknown; did you mean max_attempts?"):
        refuse_unknown(["max_attemps"], known=["max_attempts", "priority"])
    with pytest.raises(OptionError, match=r"xyz: is unknown$"):
        refuse_unknown(["xyz"], known=["max_attempts"])
