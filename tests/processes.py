"""Looking at processes from outside."""

from pathlib import Path


def is_running(pid: int) -> bool:
    """Say whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> set[int]:
    """Return the pids of a process's children, of any of its threads."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(word) for thread in threads for word in thread.read_text().split()}


def descendants(pid: int) -> set[int]:
    """Return the pids of a process's children, and of theirs."""
    found = children(pid)
    return found.union(*map(descendants, found))
