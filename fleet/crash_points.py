"""Named crash points: places between two I/O steps at which a test ends the process.

`FAULT=dispatch.before_publish:3` ends the process with SIGKILL at the third pass of that point, as
a power cut would. Several are separated by commas. Passes are counted per process; a forked child
continues its parent's count. With `FAULT_ONCE_DIR=<existing folder>`, each fault fires once for all
processes that share the folder: a marker file there says that it has fired.
"""

import itertools
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

KNOWN: dict[str, str] = {
    "submit.after_insert": "rows are inserted, the caller's transaction is still open",
    "submit.before_commit": "the transaction that submit opened itself is about to commit",
    "dispatch.after_commit": "rows are committed, nothing has been published",
    "dispatch.before_publish": "hints are built, the call to Redis comes next",
    "dispatch.after_publish": "hints are in Redis, or sent, and the outbox still lists them",
    "dispatch.after_outbox_delete": "hints are in Redis and the outbox is cleared",
    "gate.before_admit": "messages are taken, the admission statement comes next",
    "gate.after_admit": "rows are admitted and committed, the worker has not used the answer",
    "gate.before_pool": "a run has passed its start gate, the pool does not have it yet",
    "child.before_run": "in the pool child: the task's body comes next",
    "child.after_run": "in the pool child: the body has ended, its outcome has not left the child",
    "ledger.before_record": "outcomes are collected, the recording statement comes next",
    "ledger.after_record": "outcomes are committed, the messages are not acknowledged",
    "ledger.after_ack": "outcomes are committed and the messages are acknowledged",
    "pulse.after_commit": "slots are handed out as ticks, nobody has been sent any",
    "tick.after_insert": "due runs are inserted, the tick's transaction is still open",
    "tick.after_publish": "hints without rows are in Redis, the tick has not noted it",
    "tick.before_done": "all that is due is triggered, the tick is not done yet",
    "beat.after_note": "a send of beat's is noted in PostgreSQL, its publish comes next",
    "beat.after_publish": "a send of beat's is published and not yet noted as sent",
    "inbox.before_commit": "calls of the inbox are applied, their transaction is still open",
    "inbox.after_commit": "calls of the inbox are applied and committed, and still in Redis",
    "promotion.after_move": "due runs are queued and committed, no hint has been published",
    "rollout.after_release": "a wave is released, its transaction is still open",
    "rollout.after_stop": "a rollout is stopped, its transaction is still open",
    "rollout.after_due": "a chunk of a released wave is due, its transaction is still open",
    "rescue.after_move": "runs of a lost worker have moved and committed, no hint is published",
    "hooks.after_take": "ends are taken and stored as calls of hooks, no hook is called",
    "hooks.before_call": "a call of a hook is counted as failed, the call comes next",
    "hooks.after_call": "a hook has returned, its call is still stored",
    "sweep.after_publish": "the sweep has published hints and not yet noted it in PostgreSQL",
    "retention.after_copy": "runs that stay are copied, their partition is as it was",
    "retention.after_archive": "runs that leave are in the archive, and still in PostgreSQL",
    "retention.after_swap": "the copy has replaced the partition, which is not dropped yet",
}


class FaultError(ValueError):
    """FAULT or FAULT_ONCE_DIR has a wrong value."""


@dataclass
class Fault:
    """One armed crash point: the passes at which it fires, and the passes so far."""

    name: str
    fires_at: set[int]
    once_dir: Path | None = None
    # next() on a count is atomic: no lock that a fork could copy while it is held.
    passes: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def note_pass(self) -> None:
        """Count a pass; end the process if the fault fires at this one."""
        number = next(self.passes)
        if number in self.fires_at and self._is_first_to_fire(number):
            _end_process()

    def _is_first_to_fire(self, number: int) -> bool:
        if self.once_dir is None:
            return True
        try:
            # Atomic: one of several processes makes the file.
            (self.once_dir / f"{self.name}:{number}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def crash_point(name: str) -> None:
    """End the process here if FAULT says so; otherwise this costs one dict lookup."""
    fault = _armed.get(name)
    if fault is not None:
        fault.note_pass()


def read_faults(environ: Mapping[str, str]) -> dict[str, Fault]:
    """Return the faults in FAULT, by crash point.

    Raises FaultError for an unknown name (with the near miss), an item that is not `name:n` with n
    of 1 or more, or a FAULT_ONCE_DIR that is not a folder.
    """
    wanted = environ.get("FAULT", "").strip()
    if not wanted:
        return {}
    once_dir = _read_once_dir(environ.get("FAULT_ONCE_DIR", ""))
    faults: dict[str, Fault] = {}
    for item in wanted.split(","):
        name, number = _read_item(item.strip())
        faults.setdefault(name, Fault(name, set(), once_dir)).fires_at.add(number)
    return faults


def _read_item(item: str) -> tuple[str, int]:
    name, _, number = item.partition(":")
    if name not in KNOWN:
        near = get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(KNOWN)}"
        raise FaultError(f"FAULT names an unknown crash point {name!r}; {hint}")
    if not (number.isascii() and number.isdigit() and int(number) >= 1):
        raise FaultError(f"FAULT item {item!r} must be name:n with a pass n of 1 or more")
    return name, int(number)


def _read_once_dir(value: str) -> Path | None:
    if not value:
        return None
    folder = Path(value).absolute()
    if not folder.is_dir():
        raise FaultError(f"FAULT_ONCE_DIR {value!r} is not an existing folder")
    return folder


def _end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    # Linux ignores SIGKILL from the first process of a container to itself.
    os._exit(128 + signal.SIGKILL)


_armed = read_faults(os.environ)
