"""The socket that all children read: a free child takes the next job.

A job is one packet, which is read as a whole by one reader. Until a child has read it, the main
process can read it back.
"""

from __future__ import annotations

import array
import itertools
import os
import socket
import struct
from contextlib import suppress
from typing import Final

from fleet.pool.job import Job

NUMBER: Final = struct.Struct("=q")
MOST_BYTES: Final = 32_768
"""The longest packet; a longer job is in a file in memory, whose descriptor is sent."""
IN_FILE: Final = b"file"
"""The text of a job that is in a file: no pickle."""
BUFFER_BYTES: Final = 1 << 20
WAKE_SECONDS: Final = 5
"""How often an idle child wakes to see whether it is to retire."""
_FDS: Final = socket.CMSG_SPACE(struct.calcsize("i"))


class JobSocket:
    """Both ends, and which jobs were sent."""

    def __init__(self) -> None:
        self._writer, self._reader = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._writer.setblocking(False)  # the reader's end blocks: children wait on it
        self._writer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        patience = struct.pack("ll", WAKE_SECONDS, 0)
        self._reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        self._sent: dict[int, Job | None] = {}
        """By number, the oldest first; those that children have read leave late. None retires."""
        self._retirements = itertools.count(-1, -1)

    def send(self, job: Job) -> bool:
        """Send a job; False if there is no room, or no file descriptor."""
        return self._send(job.number, job.packet, job)

    def retire_one(self) -> bool:
        """Send a packet whose reader ends."""
        return self._send(next(self._retirements), b"", None)

    def _send(self, number: int, body: bytes, job: Job | None) -> bool:
        head = NUMBER.pack(number)
        try:
            if len(body) <= MOST_BYTES:
                self._writer.send(head + body)
            else:
                file = os.memfd_create("job")
                try:
                    _write_all(file, body)
                    socket.send_fds(self._writer, [head, IN_FILE], [file])
                finally:
                    os.close(file)
        except OSError:
            return False
        self._sent.pop(number, None)  # one that comes again is the last
        self._sent[number] = job
        return True

    def unread(self) -> dict[int, Job | None]:
        """Return what no child has read yet, by number, the oldest first."""
        try:
            [head] = NUMBER.unpack(
                self._reader.recv(NUMBER.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            )
        except OSError:
            self._sent.clear()
            return self._sent
        for number in list(self._sent):
            if number == head:
                break
            del self._sent[number]
        return self._sent

    def forget(self, number: int) -> None:
        """Forget a job that a child has read."""
        self._sent.pop(number, None)

    def take_back(self) -> list[Job]:
        """Read back the jobs that no child has read, the oldest first."""
        taken = []
        with suppress(OSError):  # it is empty
            while True:
                number, _body, file = _receive(self._reader, NUMBER.size, socket.MSG_DONTWAIT)
                if file is not None:
                    os.close(file)
                if (job := self._sent.get(number)) is not None:
                    taken.append(job)
        self._sent.clear()
        return taken

    def close_writer(self) -> None:
        """Have each child end when it has done its present job."""
        self._writer.close()

    def close(self) -> None:
        """Close both ends."""
        self._writer.close()
        self._reader.close()

    # --- in a child --------------------------------------------------------------------

    def leave_to_main(self) -> None:
        """Close the main process's end in a child: else no child would see the end of jobs."""
        self._writer.close()

    def read(self) -> tuple[int, bytes, int | None] | None:
        """Return the next job's number, its text, and the file that has the text of a long one.

        No text means that the reader retires; None, that nothing has come for a while. Raises
        EOFError when no more jobs will come.
        """
        try:
            return _receive(self._reader, MOST_BYTES + NUMBER.size, 0)
        except BlockingIOError:
            return None


def _receive(reader: socket.socket, size: int, flags: int) -> tuple[int, bytes, int | None]:
    packet, ancillary, *_ = reader.recvmsg(size, _FDS, flags)
    if not packet:
        raise EOFError
    files = array.array("i")
    for _level, _kind, data in ancillary:
        files.frombytes(data[: len(data) - len(data) % files.itemsize])
    [number] = NUMBER.unpack_from(packet)
    return number, packet[NUMBER.size :], files[0] if files else None


def _write_all(file: int, body: bytes) -> None:
    view = memoryview(body)
    while view:
        view = view[os.write(file, view) :]


def text_of(file: int) -> bytes:
    """Return the text in a file that was sent, and close the file."""
    with os.fdopen(file, "rb") as opened:
        opened.seek(0)
        return opened.read()
