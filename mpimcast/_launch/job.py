# SPDX-License-Identifier: BSD-3-Clause
"""Launches an MPI job of relays, whose places processes of another job take."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import select
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mpimcast._launch import mpirun, place, remote_shell, sockets
from mpimcast._launch.mpirun import LauncherError

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

_LIMIT_S = 300.0

# How long it may take to notice that the launcher has ended.
_POLL_S = 0.1

_RELAY = (sys.executable, "-m", "mpimcast._launch.relay")
_SHELL = (sys.executable, "-m", "mpimcast._launch.remote_shell")

# Open MPI's launcher refuses to run as root without these. The user who runs the
# processes as root has decided to already.
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# Connections and processes that stay for as long as this process lives.
_kept: list[object] = []


class Store(Protocol):
    """A key-value store that the processes share, such as torch's TCPStore."""

    def set(self, key: str, value: str) -> None:
        """Store a value."""

    def get(self, key: str) -> bytes:
        """Wait for a value, and return it."""


class Process(NamedTuple):
    """One of the processes that are to take part.

    Attributes
    ----------
    rank, nranks
        Its number, and how many there are.
    address
        The IP address or name of its host, equal for processes of one host only.
    """

    rank: int
    nranks: int
    address: str


def join(process: Process, store: Store) -> None:
    """Take a place in an MPI job that the process of rank 0 launches. Collective.

    MPI must be initialised afterwards. Ranks of MPI are in the order of hosts, and so
    may differ from those of the processes.

    Parameters
    ----------
    process
        This process.
    store
        A store without keys, which nothing else uses.

    Raises
    ------
    LauncherError
        If MPI's launcher cannot be started, or ends early.
    """
    token, hosts = agree(process, store)
    order = [rank for ranks in hosts.values() for rank in ranks]
    with sockets.listen(token, order.index(process.rank)) as listener:
        store.set(f"listening/{process.rank}", "")
        if process.rank == 0:
            connection = _launch(token, hosts, store, listener)
        else:
            if process.rank == hosts[process.address][0]:
                command = store.get(f"command/{process.address}").decode()
                _start(["/bin/sh", "-c", command])
            connection = _accept(listener)
    place.receive(connection).take()
    # It stays open until the process ends, which is after it has finalised MPI.
    atexit.register(_bid_farewell, connection.detach(), os.getpid())


def agree(process: Process, store: Store) -> tuple[str, dict[str, list[int]]]:
    """Return a secret of this job, and each host's ranks by address. Collective."""
    store.set(f"address/{process.rank}", process.address)
    if process.rank == 0:
        hosts: dict[str, list[int]] = {}
        for rank in range(process.nranks):
            address = store.get(f"address/{rank}").decode()
            hosts.setdefault(address, []).append(rank)
        store.set("agreed", json.dumps([secrets.token_hex(16), hosts]))
    token, agreed = json.loads(store.get("agreed"))
    return token, agreed


def _launch(
    token: str, hosts: dict[str, list[int]], store: Store, listener: socket.socket
) -> socket.socket:
    """Launch the relays; return the connection to this process's own."""
    for ranks in hosts.values():
        for rank in ranks:
            store.get(f"listening/{rank}")
    with (
        tempfile.TemporaryDirectory() as folder,
        sockets.listen(token, remote_shell.PURPOSE) as shells,
    ):
        shell = Path(folder) / "shell"
        shell.write_text(f'#!/bin/sh\nexec {shlex.join([*_SHELL, token])} "$@"\n')
        shell.chmod(0o700)
        counts = {address: len(ranks) for address, ranks in hosts.items()}
        command = mpirun.command(counts, str(shell))
        launcher = _start([*command, *_RELAY, token])
        connection = _await_relay(launcher, listener, shells, store, len(hosts))
    if connection is None:
        raise LauncherError(
            f"MPI's launcher {_failure(launcher)} before all ranks were there; it was "
            f"called as `{shlex.join(command)}`"
        )
    return connection


def _await_relay(
    launcher: subprocess.Popen[bytes],
    listener: socket.socket,
    shells: socket.socket,
    store: Store,
    nhosts: int,
) -> socket.socket | None:
    """Return the connection to this process's relay; None if the launcher fails.

    Meanwhile, pass on the launcher's command for each other host.
    """
    connection, npassed = None, 0
    deadline_s = time.monotonic() + _LIMIT_S
    while launcher.poll() is None and time.monotonic() < deadline_s:
        ready, _, _ = select.select([listener, shells], [], [], _POLL_S)
        if shells in ready:
            npassed += _pass_on(sockets.accept(shells), store)
        if listener in ready and connection is None:
            connection = sockets.accept(listener)
        if connection is not None and npassed >= nhosts - 1:
            return connection
    return None


def _failure(launcher: subprocess.Popen[bytes]) -> str:
    """Return what a launcher did that has not launched all; end it if it goes on."""
    if launcher.returncode is not None:
        return f"ended with status {launcher.returncode}"
    launcher.kill()
    return f"took more than {_LIMIT_S:g} s"


def _pass_on(connection: socket.socket | None, store: Store) -> bool:
    """Leave a command that the launcher has for a host, for a process there."""
    if connection is None:
        return False
    host, command = remote_shell.receive(connection)
    store.set(f"command/{host}", command)
    _kept.append(connection)
    return True


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program of the launcher, which lives as long as it likes."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        env={**place.without(os.environ), **_ROOT},
    )
    _kept.append(process)
    return process


def _accept(listener: socket.socket) -> socket.socket:
    """Return the connection to this process's relay."""
    listener.settimeout(_LIMIT_S)
    try:
        while True:
            connection = sockets.accept(listener)
            if connection is not None:
                return connection
    except TimeoutError:
        raise LauncherError(
            f"MPI's launcher has launched no relay for this process in {_LIMIT_S:g} s: "
            "rank 0 says why, or see whether other ranks import mpimcast.torch"
        ) from None


def _bid_farewell(connection: int, pid: int) -> None:
    """Tell the relay that this process, and not a child of it, ends normally.

    A process that dies says nothing, and has not finalised MPI.
    """
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            os.write(connection, b"\0")
