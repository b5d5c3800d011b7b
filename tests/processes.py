"""Looking at processes from outside."""

from pathlib import Path


def is_running(pid: int) -> bool:
    """Say whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def descendants(pid: int) -> set[int]:
    """Return the pids of a process's children, and of theirs."""
    found: set[int] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, thread.read_text().split()):
            found |= {child} | descendants(child)
    return found
