"""Does a batch in smaller parts where it is refused, so that one bad item fails alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Item = TypeVar("Item")


def in_halves(
    batch: list[Item],
    act: Callable[[list[Item]], object],
    *,
    is_refusal: Callable[[Exception], bool],
    refuse: Callable[[Item, Exception], object],
) -> None:
    """Act on a batch; on halves of it, and so on, if the whole is refused for its values.

    `refuse` gets each item that is refused alone, and its error. What is done leaves `batch`, so
    that after any other error, which is raised, the rest can be tried again. One bad item among n
    costs about 2 log n calls.
    """
    size = len(batch)
    while batch:
        part = batch[:size]
        try:
            act(part)
        except Exception as error:
            if not is_refusal(error):
                raise
            if len(part) > 1:
                size = (len(part) + 1) // 2
                continue
            refuse(part[0], error)
        del batch[: len(part)]
        size *= 2
