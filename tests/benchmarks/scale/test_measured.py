"""The committed figures, and the command that uses them."""

import pytest

from tests.benchmarks.scale.__main__ import main
from tests.benchmarks.scale.measured import costs_of, layout_of, measured, point_name
from tests.benchmarks.scale.simulation import simulate


@pytest.mark.proof  # it simulates for seconds, as the next one
def test_the_simulated_rates_are_those_of_the_code() -> None:
    """A change of the simulation, or of a shipped rule of workers, needs a new measurement."""
    found = measured()
    costs = costs_of(found.medians, cores=found.cores)
    assert len(found.simulated) == 9
    for workers, ms in ((1, 0), (2, 5), (4, 50)):
        layout = layout_of(found.medians, workers, ms, cores=found.cores)
        now = simulate(costs, layout, task_seconds=ms / 1000)
        assert now.rate == pytest.approx(found.simulated[point_name(workers, ms)], rel=0.01)


@pytest.mark.proof
def test_the_command_answers_for_other_machines() -> None:
    """Long tasks on many cores: slots limit them, and a day has 86,400 seconds."""
    arguments = "--workers 4 --slots 8 --cores 8 --postgres-cores 8 --task-ms 1000"
    rate, statements, cores = main(arguments.split()).splitlines()
    runs, _, a_day = rate.partition(" runs/s, ")
    assert float(runs) == pytest.approx(32, rel=0.1)
    assert float(a_day.split()[0]) == pytest.approx(float(runs) * 86_400 / 1e6, rel=0.1)
    assert statements.startswith("statements of PostgreSQL for a run: ")
    assert cores.startswith("cores in use: workers ")


@pytest.mark.parametrize("given", ["--slots 0", "--cores none", "--workers 1.5"])
def test_a_bad_number_is_refused_with_its_limits(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is simulated."""
    with pytest.raises(SystemExit):
        main(given.split())
    name, _, value = given.partition(" ")
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"argument {name}: '{value}' is no" in line
    assert " from 1 to " in line
