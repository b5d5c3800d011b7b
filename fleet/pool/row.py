"""Memory that a child shares with its pool: its present job, when that began, and what is asked."""

from __future__ import annotations

import mmap
import time
from typing import Final

NONE: Final = -1
BOOTING: Final = -2
_SIZE: Final = 32
_NUMBER, _BEGAN, _STOPPED, _RETIRES = range(4)


class Row:
    """One child's row. Each value has 8 bytes, which are written and read as a whole.

    The number of the last job stays when that has ended: its pool no longer has it then.
    """

    def __init__(self) -> None:
        memory = memoryview(mmap.mmap(-1, _SIZE))
        self._numbers, self._times = memory.cast("q"), memory.cast("d")
        self._numbers[_NUMBER], self._numbers[_STOPPED] = BOOTING, NONE

    @property
    def number(self) -> int:
        return self._numbers[_NUMBER]

    @property
    def began_at(self) -> float:
        return self._times[_BEGAN]

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether the job to stop is the present one."""
        return self._numbers[_STOPPED] == self._numbers[_NUMBER]

    @property
    def retires(self) -> bool:
        """Whether the child is to end after its present job."""
        return bool(self._numbers[_RETIRES])

    def boot(self) -> None:
        """Note, in the child, that it reads jobs now."""
        self._numbers[_NUMBER] = NONE

    def begin(self, number: int) -> float:
        """Note, in the child, that it has read this job; return when."""
        # First the time: the main process reads it when it has seen the number.
        self._times[_BEGAN] = began_at = time.monotonic()
        self._numbers[_NUMBER] = number
        return began_at

    def ask_to_stop(self, number: int) -> None:
        """Note, in the main process, which job the next soft signal is for."""
        self._numbers[_STOPPED] = number

    def ask_to_retire(self) -> None:
        """Note, in the main process, that the child is to end after its present job."""
        self._numbers[_RETIRES] = 1
