"""The pipe into which all children write their results.

A result is one frame or several, each of which a pipe takes as a whole, so that frames of several
children do not mix. All frames in the pipe are read with one call.
"""

from __future__ import annotations

import os
import select
import struct
from typing import Final, NamedTuple

BOOTED: Final = -1
"""In place of a job's number: the child reads jobs now."""
READ_BYTES: Final = 1 << 16
_HEAD: Final = struct.Struct("=IiqdB")
_MOST: Final = select.PIPE_BUF - _HEAD.size


class Answer(NamedTuple):
    """A result of a child: its process id, the job's number and start, and the pickled value."""

    pid: int
    number: int
    began_at: float
    text: bytes


class Results:
    """Both ends of the pipe."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._left = b""
        self._parts: dict[int, list[bytes]] = {}

    def read(self) -> list[Answer]:
        """Return the answers that are here."""
        try:
            text = self._left + os.read(self.reader, READ_BYTES)
        except BlockingIOError:
            return []
        answers, at, size = [], 0, len(text)
        while at + _HEAD.size <= size:
            length, pid, number, began_at, is_last = _HEAD.unpack_from(text, at)
            end = at + _HEAD.size + length
            if end > size:
                break
            body, at = text[at + _HEAD.size : end], end
            if not is_last:
                self._parts.setdefault(pid, []).append(body)
                continue
            if pid in self._parts:
                body = b"".join((*self._parts.pop(pid), body))
            answers.append(Answer(pid, number, began_at, body))
        self._left = text[at:]
        return answers

    def read_all(self) -> list[Answer]:
        """Return all answers, also those that come meanwhile."""
        answers: list[Answer] = []
        while found := self.read():
            answers += found
        return answers

    def forget(self, pid: int) -> None:
        """Forget the parts of a result whose child has ended."""
        self._parts.pop(pid, None)

    def close(self) -> None:
        os.close(self.reader)
        os.close(self._writer)

    # --- in a child --------------------------------------------------------------------

    def leave_to_main(self) -> None:
        """Close the main process's end in a child."""
        os.close(self.reader)

    def write(self, answer: Answer) -> None:
        """Write an answer; wait while the pipe is full."""
        pid, number, began_at, text = answer
        while True:
            part, text = text[:_MOST], text[_MOST:]
            head = _HEAD.pack(len(part), pid, number, began_at, not text)
            os.write(self._writer, head + part)
            if not text:
                return
