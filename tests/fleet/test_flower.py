"""fleet/flower.py: its options as people write them, and its errors."""

from types import SimpleNamespace

import pytest

from fleet.flower import GuardedFlower, spelled


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["--port", "5556"], ["--port=5556"]),
        (["--port=5556"], ["--port=5556"]),
        (["--debug", "--url-prefix", "flower"], ["--debug", "--url-prefix=flower"]),
        (["--basic_auth", "ann:secret"], ["--basic_auth=ann:secret"]),
        (["--read_only=True", "--max-tasks", "10"], ["--read_only=True", "--max-tasks=10"]),
        (["--loglevel", "info"], ["--loglevel", "info"]),
    ],
)
def test_a_value_may_stand_behind_a_space(given: list[str], read: list[str]) -> None:
    """Flower itself reads only the form with an equals sign; other arguments are left alone."""
    assert list(spelled(given)) == read


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--port"], "--port needs a value"),
        (["--port", "--debug"], "--port needs a value"),
        (["--port", "many"], "--port is 'many', but must be a number"),
        (["--port=many"], "--port is 'many', but must be a number"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(given: list[str], said: str) -> None:
    """Without a traceback."""
    with pytest.raises(SystemExit) as refused:
        list(spelled(given))
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("login", [":", "ann:", ":secret", "ann"])
def test_half_a_login_is_refused(login: str) -> None:
    """Everyone could guess it, and read the arguments of tasks."""
    with pytest.raises(SystemExit, match=r"FLOWER_BASIC_AUTH .* neither of them may be empty"):
        GuardedFlower(site="", options=SimpleNamespace(basic_auth=[login], auth=""))
