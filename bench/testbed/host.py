# SPDX-License-Identifier: BSD-3-Clause
"""Emulate a host with namespaces that live as long as the process that made them.

Nothing in a host has a name outside it, so hosts of different runs do not collide. The
first process of a host reads a pipe, whose other end its maker holds. When the maker
closes the pipe, or dies, the first process ends, and the kernel then ends all other
processes of its process namespace. The network and all files vanish with the last of
them. So even a run that is killed leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

_NAMESPACES = ("--uts", "--mount", "--pid", "--ipc")
_NETWORK = "--net"
_LIMIT_S = 30
_UP_PAUSE_S = 0.01  # between two looks at a device


class Host:
    """A host with its own network, name, processes, /run and /dev/shm.

    Parameters
    ----------
    name
        The name that ``hostname`` prints in the host.
    within
        The outer host, or None if that is this machine. An outer host sees the
        processes of this one, shares its /run with it, and ends it when it ends.
    own_network
        Whether the host has a network of its own; else it has the outer host's.
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
        """Return the PID of the host's first process, once it runs."""
        assert self._holder.stdin is not None  # noqa: S101 -- both are pipes
        assert self._holder.stdout is not None  # noqa: S101 -- both are pipes
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        if not self._holder.stdout.read(1):
            raise RuntimeError("this machine cannot create a namespace")
        last = self._holder.pid
        while children := _children(last):
            last = children[0]
        return last

    @property
    def pid_within(self) -> int:
        """The first process's PID in the outer host, or 1 if there is none."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                # NSpid lists PIDs from the outermost process namespace inwards.
                inner = line.split()[2:]
                return int(inner[-2]) if len(inner) > 1 else 1
        raise RuntimeError(f"/proc/{self.pid}/status has no NSpid")

    def enter(self, folder: str | Path = "/") -> list[str]:
        """Return words to put before a command, so that it runs in this host.

        Its working directory is `folder`.
        """
        return ["nsenter", f"--target={self.pid}", "--all", f"--wdns={folder}"]

    def run(self, *command: str, given: str = "") -> str:
        """Run a command in this host, with `given` as its input; return its output.

        Raises
        ------
        RuntimeError
            If the command fails. The text contains what it printed.
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

    def await_up(self, device: str) -> None:
        """Wait until the kernel says that a device is up, up to a second after it is.

        Raise RuntimeError if that takes too long.
        """
        deadline_s = time.monotonic() + _LIMIT_S
        while True:
            (said,) = json.loads(self.run("ip", "-json", "link", "show", device))
            if said["operstate"] == "UP":
                return
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"{self.name}: {device} does not come up: {said}")
            time.sleep(_UP_PAUSE_S)

    def write(self, path: str, text: str) -> None:
        """Write a text file in this host."""
        self.run("tee", path, given=text)

    def end_processes(self) -> None:
        """Kill all processes in this host but its first, so that the host stays."""
        # kill -1 spares itself and the first process, and fails if there is no other.
        self.run("sh", "-c", "kill -KILL -1 || :")

    def close(self) -> None:
        """End the host, its processes, and the hosts within it.

        A host may be closed more than once.
        """
        assert self._holder.stdin is not None  # noqa: S101 -- a pipe
        self._holder.stdin.close()
        self._holder.wait(_LIMIT_S)
        if self._holder.stdout is not None:
            self._holder.stdout.close()


def why_unavailable() -> str:
    """Return the reason why no host can be made here, or an empty text if one can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    done = subprocess.run(
        ["unshare", *_NAMESPACES, _NETWORK, "--fork", "--mount-proc", "true"],  # noqa: S607 -- of PATH
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        ""
        if done.returncode == 0
        else f"this machine cannot create namespaces: {done.stderr.strip()}"
    )


def _children(pid: int) -> list[int]:
    """Return the PIDs of a process's children."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
