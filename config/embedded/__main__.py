"""python -m config.embedded {status,stop,erase}: look at, stop, or remove the servers' data."""

import argparse
import os
import shutil
from pathlib import Path

from config.embedded.care import STOP_SECONDS
from config.embedded.client import ask, connect
from config.embedded.locks import await_end
from config.embedded.places import Places
from config.embedded.supervisor import serve
from config.state import default_state_dir


def main() -> None:
    """Run one verb."""
    parser = argparse.ArgumentParser(prog="python -m config.embedded", description=__doc__)
    parser.add_argument("verb", choices=("status", "stop", "erase", "serve"))
    parser.add_argument("--lock", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    places = Places(Path(os.environ.get("FAIRSHIFT_STATE_DIR") or default_state_dir()))
    if arguments.verb == "serve":
        serve(places, lock=arguments.lock)
        return
    if arguments.verb == "status":
        status(places)
        return
    stop(places)
    if arguments.verb == "erase" and places.state.exists():
        shutil.rmtree(places.state)
        print(f"Removed {places.state}")


def status(places: Places) -> None:
    """Print what runs, for how many processes, and where its data is."""
    connection = connect(places)
    reply = ask(connection, "status") if connection else None
    if reply is None:
        print(f"Not running. Data: {places.state}")
        return
    print(f"Running for {reply['clients']} processes. Data: {places.state}")
    for name, url in reply["urls"].items():
        print(f"{name:10} pid {reply['pids'][name]:<8} {url}")


def stop(places: Places) -> None:
    """Stop the servers, even if they are in use, and return when they have ended."""
    connection = connect(places)
    was_asked = connection is not None and ask(connection, "stop") is not None
    # A supervisor that ends by itself answers no more, and its servers may still run.
    await_end(places.lock, seconds=2 * STOP_SECONDS)
    if was_asked:
        print("Stopped.")


if __name__ == "__main__":
    main()
