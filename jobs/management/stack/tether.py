"""A child process that cannot outlive its parent."""

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(death_signal: signal.Signals) -> Callable[[], None]:
    """Return a `preexec_fn`: the child gets this signal when the thread that starts it ends."""
    parent = os.getpid()

    def tie() -> None:
        # subprocess calls this after a change of user, which resets the setting.
        LIBC.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return tie
