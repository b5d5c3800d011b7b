"""tests/compat/cells.py: the few combinations have each version with each Celery."""

from fleet.versions import TESTED
from tests.compat.cells import DJANGOS, PYTHONS, Cell, covering, every


def test_the_few_have_each_value_with_each_celery_and_both_corners() -> None:
    """The oldest of all, the newest of all, and no Django on a Python that it does not run on."""
    few = covering(PYTHONS)
    for celery in TESTED["celery"]:
        own = [cell for cell in few if cell.celery == celery]
        assert {cell.redis for cell in own} == {*TESTED["redis"]}
        assert {cell.python for cell in own} == {*PYTHONS}
        assert {cell.django for cell in own} == {*DJANGOS}
    oldest, newest = [
        Cell(TESTED["celery"][end], TESTED["redis"][end], PYTHONS[end], DJANGOS[end])
        for end in (0, -1)
    ]
    assert (few[0], few[-1]) == (oldest, newest)
    assert set(few) <= set(every(PYTHONS))
