# SPDX-License-Identifier: BSD-3-Clause
"""Run commands in a Linux guest that has RDMA devices.

For the host the guest is one process of a user, who need not be root. It sees the
host's files. Its kernel has RDMA devices in software, each on a port of one switch (see
fabric.sh). The kernel is itself a program, or runs on an emulated machine (see
machine.py).

A socket connects this process, the guest's owner, to the first process in the guest
(see init.sh). The first process reads a request, runs it and answers with its status;
between requests the guest sleeps. When the owner closes the socket, or dies, the guest
switches itself off.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from bench.guest.machine import machine

_HERE = Path(__file__).parent
_BOOT_LIMIT_S = 60
_GRACE_S = 30  # the wait for an answer after a command's own limit
_CONSOLE_LINES = 40  # how many an error shows


class Died(RuntimeError):
    """The guest has ended, or no longer answers; the text ends with its last output."""


class Failed(RuntimeError):
    """A command has ended with a status other than 0; the text has its output."""


class Guest:
    """A guest that runs while a ``with`` block does.

    If the guest dies, the command that was running raises Died, and the next command
    starts another guest.

    Parameters
    ----------
    kernel
        The kernel that kernel.py makes, or the folder that debian.py makes. With the
        folder the guest is emulated; since that is slow, all limits are multiplied.
    devices
        The number of RDMA devices. They are called rxe0 and so on, and rxe0 is on the
        network device net0.
    memory
        The size of the guest's memory, as in "2G"; the host provides only what is used.

    Attributes
    ----------
    work : Path
        The one folder of the host that the guest can write to. It has the same path on
        the host and in the guest, without blanks. Commands run in it. It is empty at
        first, and is removed at the end of the block.
    process : subprocess.Popen
        The guest's kernel, which leads a process group of all its processes.
    """

    def __init__(self, kernel: Path, *, devices: int, memory: str = "2G") -> None:
        self.devices = devices
        self._kernel = kernel.absolute()
        self._machine = machine(kernel)
        self._memory = memory
        self._nrequests = 0

    def __enter__(self) -> Self:
        """Boot the guest."""
        # The kernel's command line has no quoting, so paths must not have blanks.
        temporary = tempfile.gettempdir()
        parent = "/tmp" if " " in temporary else temporary  # noqa: S108 -- mkdtemp follows
        self._place = Path(tempfile.mkdtemp(prefix="mpimcast-guest-", dir=parent))
        try:
            (self._place / "guest").symlink_to(_HERE)
            (self._place / "kernel").symlink_to(self._kernel)
            self.work = self._place / "work"
            self.work.mkdir()
            self._boot()
        except BaseException:
            shutil.rmtree(self._place)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the guest, and remove its folder."""
        self._end()
        shutil.rmtree(self._place)

    def run(
        self,
        command: Sequence[str | Path],
        *,
        limit_s: float,
        cwd: Path | None = None,
        **env: str,
    ) -> str:
        """Run a command in the guest and return its output.

        Raises
        ------
        Failed
            If the exit status is not 0.
        Died
            If the guest dies or does not answer.
        """
        status, output = self.run_unchecked(command, limit_s=limit_s, cwd=cwd, **env)
        if status != 0:
            shown = " ".join(map(str, command))
            raise Failed(f"exit status {status} in the guest of: {shown}\n{output}")
        return output

    def run_unchecked(
        self,
        command: Sequence[str | Path],
        *,
        limit_s: float,
        cwd: Path | None = None,
        **env: str,
    ) -> tuple[int, str]:
        """Run a command in the guest; return its exit status and output.

        Parameters
        ----------
        command
            Program and arguments.
        limit_s
            The seconds after which the command is ended, with status 124, or 137 if
            it had to be killed.
        cwd
            The directory to run in, instead of `work`.
        **env
            Variables to set besides those of init.sh. The host's are not passed on.

        Raises
        ------
        Died
            If the guest dies or does not answer.
        """
        if self._line.fileno() < 0:
            self._boot()
        self._nrequests += 1
        script = self.work / f"request{self._nrequests}"
        output = script.with_name(f"{script.name}.out")
        script.write_text(_script(command, cwd or self.work, env))
        inside_s = limit_s * self._machine.slowness
        status = self._ask(f"{script} {inside_s:g}\n", limit_s + _GRACE_S)
        said = output.read_text(errors="replace")
        script.unlink()
        output.unlink()
        return status, said

    def _boot(self) -> None:
        """Start the guest, and wait until its devices are set up."""
        self._line, line = socket.socketpair()
        with line, self._console.open("wb") as console:
            descriptor = line.fileno()
            settings = [
                *("quiet", "panic=-1"),
                *(f"guest_work={self.work}", f"guest_devices={self.devices}"),
            ]
            self.process = subprocess.Popen(
                self._machine.command(self._place, self._memory, descriptor, settings),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                pass_fds=[descriptor],
                start_new_session=True,
            )
        status = self._ask("", _BOOT_LIMIT_S)
        if status != 0:
            raise self._died(f"fabric.sh ended with status {status}")

    @property
    def _console(self) -> Path:
        return self._place / "console"

    def _ask(self, request: str, limit_s: float) -> int:
        """Send a request; return the status that the guest answers with.

        An empty request waits for the answer that the guest sends after it has booted.
        Raise Died if there is no answer.
        """
        limit_s *= self._machine.slowness
        self._line.settimeout(limit_s)
        try:
            self._line.sendall(request.encode())
            with self._line.makefile() as answer:
                said = answer.readline()
        except TimeoutError:
            raise self._died(f"the guest has not answered for {limit_s:g} s") from None
        except OSError:
            said = ""
        except BaseException:
            # A late answer would be taken for the status of the next request.
            self._end()
            raise
        if not said:
            raise self._died("the guest has ended")
        return int(said)

    def _died(self, why: str) -> Died:
        """End the guest, and return an error with the end of its console."""
        self._end()
        lines = self._console.read_text(errors="replace").splitlines()
        tail = "\n".join(lines[-_CONSOLE_LINES:])
        return Died(f"{why}; the end of its console:\n{tail}")

    def _end(self) -> None:
        """End the guest if it runs."""
        if self._line.fileno() < 0:
            return
        # Killing the guest loses nothing: it has no disk, and all that it wrote to the
        # folder `work` is in the host's files already.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._line.close()


def _script(command: Sequence[str | Path], cwd: Path, env: dict[str, str]) -> str:
    """Return a shell script that runs a command in a directory, with variables."""
    lines = [
        f"cd {shlex.quote(str(cwd))} || exit",
        *(f"export {name}={shlex.quote(value)}" for name, value in env.items()),
        f"exec {shlex.join(map(str, command))}",
    ]
    return "\n".join([*lines, ""])
