"""python -m config.embedded {status,stop}: looks at and stops the embedded servers."""

import argparse
import os
from pathlib import Path

from config.embedded.care import STOP_SECONDS
from config.embedded.client import ask, connect
from config.embedded.places import Places
from config.embedded.supervisor import serve
from config.state import default_state_dir


def main() -> None:
    """Run one verb."""
    parser = argparse.ArgumentParser(prog="python -m config.embedded", description=__doc__)
    parser.add_argument("verb", choices=("status", "stop", "serve"))
    parser.add_argument("--lock", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    places = Places(Path(os.environ.get("FAIRSHIFT_STATE_DIR") or default_state_dir()))
    if arguments.verb == "serve":
        serve(places, lock=arguments.lock)
        return
    connection = connect(places)
    reply = ask(connection, arguments.verb) if connection else None
    if connection is None or reply is None:
        print(f"Not running. Data: {places.state}")
    elif arguments.verb == "stop":
        connection.settimeout(STOP_SECONDS * 2)
        connection.recv(1)  # ends when the supervisor has ended
        print("Stopped.")
    else:
        print(f"Running for {reply['clients']} clients. Data: {places.state}")
        for name, url in reply["urls"].items():
            print(f"{name:10} pid {reply['pids'][name]:<8} {url}")


if __name__ == "__main__":
    main()
