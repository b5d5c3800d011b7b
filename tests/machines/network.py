"""Machines: network namespaces, each with an address, on a switch that nothing else reaches.

A cut is a rule of nftables that drops packets, on the machine's own side. Needs root.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, Literal

from jobs.management.stack.stack import Program, Running, Stack
from jobs.management.stack.tether import die_with_parent

NET: Final = "10.77.0"
FILTER: Final = """
table inet faults {
    chain in { type filter hook input priority 0; }
    chain out { type filter hook output priority 0; }
}
"""
Way = Literal["both", "in", "out"]
"""Which packets of a machine are dropped: what it sends is `out`."""


class _Namespace:
    """A network namespace that a process keeps open."""

    def __init__(self, begin: str) -> None:
        code = f"ip link set lo up && {begin} && echo up && exec sleep infinity"
        self.keeper = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "sh", "-c", code],
            stdout=subprocess.PIPE,
        )
        assert self.keeper.stdout is not None
        assert self.keeper.stdout.readline() == b"up\n"

    @property
    def path(self) -> str:
        return f"/proc/{self.keeper.pid}/ns/net"

    def enter(self, *words: str) -> list[str]:
        return ["nsenter", f"--net={self.path}", *words]

    def do(self, *words: str) -> None:
        subprocess.run(self.enter(*words), check=True, capture_output=True)

    def pids(self) -> list[int]:
        """Return the processes in it, but for the keeper."""
        inode, found = os.stat(self.path).st_ino, []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.stat(entry / "ns/net").st_ino == inode:
                    found.append(int(entry.name))
        return [pid for pid in found if pid != self.keeper.pid]

    def end(self) -> None:
        """Kill all that runs in it; nothing is sent any more. It may have ended before."""
        if self.keeper.poll() is not None:
            return
        while pids := self.pids():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        self.keeper.kill()
        self.keeper.wait()


class Switch:
    """What the machines are linked by."""

    def __init__(self) -> None:
        self._space = _Namespace("ip link add name switch type bridge && ip link set switch up")
        self.machines: dict[str, Machine] = {}

    def machine(self, name: str, number: int) -> Machine:
        """Have a machine at an address that ends with this number."""
        self.machines[name] = Machine(self, name, number)
        return self.machines[name]

    def link(self, space: _Namespace, number: int) -> None:
        port, pid = f"to-{number}", str(space.keeper.pid)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", pid)
        self._space.do("ip", "link", "add", port, *peer)
        self._space.do("ip", "link", "set", port, "master", "switch", "up")
        # The same again after a boot, as a machine has it: others remember it.
        space.do("ip", "link", "set", "eth0", "address", f"02:00:00:00:00:{number:02x}")
        space.do("ip", "address", "add", f"{NET}.{number}/24", "dev", "eth0")
        space.do("ip", "link", "set", "eth0", "up")

    def unlink(self, number: int) -> None:
        """Take a link away. The kernel would do that some time after its machine's end."""
        self._space.do("ip", "link", "delete", f"to-{number}")

    def close(self) -> None:
        for machine in self.machines.values():
            machine.close()
        self._space.end()


class Machine:
    """One machine, and the programs that it starts again when they end."""

    def __init__(self, switch: Switch, name: str, number: int) -> None:
        self.name, self.number, self.address = name, number, f"{NET}.{number}"
        self._switch = switch
        self.stacks: dict[str, Stack] = {}
        self.is_up = False
        self.boot()

    def boot(self) -> None:
        """Link it; it runs no program yet."""
        self._space = _Namespace(f"nft '{FILTER}'")
        self._switch.link(self._space, self.number)
        self.is_up = True

    @property
    def namespace(self) -> str:
        """The path of its network namespace."""
        return self._space.path

    def enter(self, *words: str) -> list[str]:
        """Return a command that runs on this machine."""
        return self._space.enter(*words)

    def start(self, program: Program, *, logs: Path) -> Stack:
        """Run a program, as a supervisor does; return it with its log in `logs`."""
        stack = Stack([program], log_folder=logs, restart=True, starter=self._start)
        self.stacks[program.name] = stack
        stack.start()
        return stack

    def _start(self, program: Program, output: BinaryIO) -> Running:
        return subprocess.Popen(
            self.enter(*program.command),
            env=os.environ | dict(program.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )

    def watch(self) -> None:
        """Start again what has ended by itself."""
        if self.is_up:
            for stack in self.stacks.values():
                stack.watch()

    # --- faults ------------------------------------------------------------------------

    def cut(self, *others: Machine, way: Way = "both") -> None:
        """Drop the packets between this machine and others; without others, those of all."""
        addresses = ",".join(other.address for other in others) or f"{NET}.0/24"
        for chain, end in (("in", "saddr"), ("out", "daddr")):
            if way in ("both", chain):
                match = ("ip", end, f"{{{addresses}}}")
                self._space.do("nft", "add", "rule", "inet", "faults", chain, *match, "drop")

    def lose(self, percent: int) -> None:
        """Drop so many of a hundred packets, either way, by chance."""
        chance = ("numgen", "random", "mod", "100", "<", str(percent))
        for chain in ("in", "out"):
            self._space.do("nft", "add", "rule", "inet", "faults", chain, *chance, "drop")

    def heal(self) -> None:
        """Undo `cut` and `lose`."""
        for chain in ("in", "out"):
            self._space.do("nft", "flush", "chain", "inet", "faults", chain)

    def detour(self, port: int, *, to: Machine, at: int, mark: int) -> None:
        """Lead connections to a port of another machine to a local one, but for marked ones."""
        chain = "type nat hook output priority -100;"
        rule = f"meta mark {mark} accept; ip daddr {to.address} tcp dport {port} dnat to"
        rule = f"{rule} {self.address}:{at};"
        text = f"table ip to{to.number}x{port} {{ chain out {{ {chain} {rule} }}; }}"
        self._space.do("nft", text)

    def vanish(self) -> None:
        """Lose the link and then all processes and sockets: no peer hears of it."""
        self._space.do("ip", "link", "set", "eth0", "down")
        self.is_up = False
        self.close()
        self._switch.unlink(self.number)

    def close(self) -> None:
        self._space.end()
        for stack in self.stacks.values():
            stack.stop(grace_seconds=0)
        self.stacks.clear()


@contextmanager
def switch() -> Iterator[Switch]:
    """A switch with machines; afterwards nothing of them is left."""
    made = Switch()
    try:
        yield made
    finally:
        made.close()
