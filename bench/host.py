# SPDX-License-Identifier: BSD-3-Clause
"""A machine in the machine: namespaces of its own, as long as its owner lives.

Nothing of it has a name outside. Its first process reads a pipe that the owner
holds; when the owner closes the pipe, or dies, that process ends, with it all others
of its process namespace, and with the last of them the network and all files. So a
killed run leaves nothing behind, and runs cannot get in each other's way.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_NAMESPACES = ("--uts", "--mount", "--pid", "--ipc")
_NETWORK = "--net"
_LIMIT_S = 30


class Host:
    """Network, host name, processes and files under /run and /dev/shm of its own.

    Parameters
    ----------
    name
        What ``hostname`` says in it.
    within
        The host whose /run it shares, which sees its processes and with which it
        ends; None for a host of this machine.
    own_network
        False: it has the network of the host that it is within.
    """

    def __init__(
        self, name: str, within: Host | None = None, *, own_network: bool = True
    ) -> None:
        self.name = name
        enter = within.enter() if within else []
        namespaces = [*_NAMESPACES, _NETWORK] if own_network else _NAMESPACES
        self._holder = subprocess.Popen(
            [*enter, "unshare", *namespaces, "--fork", "--mount-proc", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self.pid = self._await_first()
            self.run("hostname", name)
            self.run("ip", "link", "set", "lo", "up")
            self.run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")  # noqa: S108 -- its own
            if within is None:
                self.run("mount", "-t", "tmpfs", "tmpfs", "/run")
            else:
                self.write(f"/run/{name}.pid", str(self.pid_within))
        except BaseException:
            self.close()
            raise

    def _await_first(self) -> int:
        """Return its first process, once that runs."""
        assert self._holder.stdin is not None  # noqa: S101 -- both are pipes
        assert self._holder.stdout is not None  # noqa: S101 -- likewise
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        if not self._holder.stdout.read(1):
            raise RuntimeError("a namespace cannot be made here")
        last = self._holder.pid
        while children := _children(last):
            last = children[0]
        return last

    @property
    def pid_within(self) -> int:
        """Its first process's number in the host that this one is within, or 1."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                # Its numbers from the outermost process namespace to its own.
                inner = line.split()[2:]
                return int(inner[-2]) if len(inner) > 1 else 1
        raise RuntimeError("/proc tells no NSpid")

    def enter(self, folder: str | Path = "/") -> list[str]:
        """Return the beginning of a command line that runs the rest in here."""
        return ["nsenter", f"--target={self.pid}", "--all", f"--wdns={folder}"]

    def run(self, *command: str, given: str = "") -> str:
        """Run a command in here; return what it printed.

        Raises
        ------
        RuntimeError
            If it fails, with what it said.
        """
        done = subprocess.run(
            [*self.enter(), *command],
            input=given,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{self.name}: {' '.join(command)}: status {done.returncode}\n"
                f"{given}{done.stdout}{done.stderr}"
            )
        return done.stdout

    def write(self, path: str, text: str) -> None:
        """Write a file in here."""
        self.run("tee", path, given=text)

    def end_processes(self) -> None:
        """Kill all that runs in here, but not the host."""
        # It reaches neither itself nor the first process, and fails for nobody.
        self.run("sh", "-c", "kill -KILL -1 || :")

    def close(self) -> None:
        """End the host, all that runs in it, and the hosts within it.

        More than once does nothing.
        """
        assert self._holder.stdin is not None  # noqa: S101 -- a pipe
        self._holder.stdin.close()
        self._holder.wait(_LIMIT_S)
        if self._holder.stdout is not None:
            self._holder.stdout.close()


def obstacle() -> str:
    """Return what stands against making hosts here, empty if nothing does."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    done = subprocess.run(
        ["unshare", *_NAMESPACES, _NETWORK, "--fork", "--mount-proc", "true"],  # noqa: S607 -- of PATH
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else f"no namespaces here: {done.stderr.strip()}"


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
