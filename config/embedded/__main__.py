"""python -m config.embedded {status,stop,erase}: look at, stop, or remove the servers' data."""

import argparse
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from config.embedded.client import kept
from config.embedded.keeper import keep
from config.embedded.places import Places
from config.embedded.server import STOP_SECONDS
from config.state import default_state_dir


def main() -> None:
    """Run one verb."""
    parser = argparse.ArgumentParser(prog="python -m config.embedded", description=__doc__)
    parser.add_argument("verb", choices=("status", "stop", "erase", "keep"))
    parser.add_argument("--lock", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    places = Places(Path(os.environ.get("FAIRSHIFT_STATE_DIR") or default_state_dir()))
    if arguments.verb == "keep":
        os.set_inheritable(arguments.lock, False)
        try:
            # The kernel closes the descriptor, when nothing of this process is left.
            keep(places, lock=os.fdopen(arguments.lock, "r+b", closefd=False))
        except OSError as error:
            raise SystemExit(str(error)) from error
    elif arguments.verb == "status":
        status(places)
    else:
        stop(places)
        if arguments.verb == "erase" and places.state.exists():
            shutil.rmtree(places.state)
            print(f"Removed {places.state}")


def status(places: Places) -> None:
    """Print what runs, and where its data is."""
    pid, urls = kept(places)
    print(f"{'Not running' if pid is None else 'Running'}. Data: {places.state}")
    for name, url in urls.items():
        print(f"{name:10} {url}")


def stop(places: Places) -> None:
    """Stop the servers, even if they are in use, and return when they have ended."""
    deadline = time.monotonic() + 3 * STOP_SECONDS
    was_running = False
    while (pid := kept(places)[0]) is not None:
        was_running = True
        if time.monotonic() > deadline:
            raise TimeoutError(f"{places.lock} is still locked: the servers did not end.")
        if pid:  # a keeper that has just started has not written its own yet
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(0.02)
    if was_running:
        print("Stopped.")


if __name__ == "__main__":
    main()
