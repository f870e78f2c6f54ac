# SPDX-License-Identifier: BSD-3-Clause
"""Launches an MPI job, and lets the processes of this one take its ranks' places."""

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

_LIMIT_S = 300.0

# How long it may take to notice that the launcher has ended.
_POLL_S = 0.1

_RELAY = (sys.executable, "-m", "mpimcast._launch.relay")
_SHELL = (sys.executable, "-m", "mpimcast._launch.remote_shell")

# Open MPI's launcher wants root to say that root is meant. Whoever has started the
# processes of this job has decided so already.
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# Connections and processes that stay for as long as this process lives.
_kept: list[object] = []


class Store(Protocol):
    """Where the processes leave words for each other, such as torch's TCPStore."""

    def set(self, key: str, value: str) -> None:
        """Leave a value."""

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
        A store that is empty; what it holds afterwards is of no use.

    Raises
    ------
    LauncherError
        If MPI's launcher cannot be started, or ends early.
    """
    token, hosts = _agree(process, store)
    order = [rank for ranks in hosts.values() for rank in ranks]
    with sockets.listen(token, order.index(process.rank)) as listener:
        store.set(f"listening/{process.rank}", "")
        if process.rank == 0:
            connection = _launch(token, hosts, store, listener)
        else:
            first_address = next(iter(hosts))
            ranks = hosts[process.address]
            if process.address != first_address and process.rank == ranks[0]:
                _run(store.get(f"command/{process.address}").decode())
            connection = _accept(listener)
    place.receive(connection).take()
    # It stays open until the process ends, which is after it has finalised MPI.
    atexit.register(_bid_farewell, connection.detach(), os.getpid())


def _agree(process: Process, store: Store) -> tuple[str, dict[str, list[int]]]:
    """Return what only this job knows, and each host's ranks by address. Collective."""
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
        launcher = subprocess.Popen(
            [*mpirun.command(counts, str(shell)), *_RELAY, token],
            stdin=subprocess.DEVNULL,
            env={**place.without(os.environ), **_ROOT},
        )
        return _await_relay(launcher, listener, shells, store, len(hosts))


def _await_relay(
    launcher: subprocess.Popen[bytes],
    listener: socket.socket,
    shells: socket.socket,
    store: Store,
    nhosts: int,
) -> socket.socket:
    """Return the connection to this process's relay.

    Meanwhile pass the launcher's command for each other host on.
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
            _kept.append(launcher)
            return connection
    how = f"ended with status {launcher.returncode}"
    if launcher.returncode is None:
        launcher.kill()
        how = f"has not launched all in {_LIMIT_S:g} s"
    raise LauncherError(
        f"MPI's launcher {how}, before the ranks were there; it was called as "
        f"`{shlex.join(map(str, launcher.args))}`"  # type: ignore[arg-type]
    )


def _pass_on(connection: socket.socket | None, store: Store) -> bool:
    """Leave a command that the launcher has for a host, for a process there."""
    if connection is None:
        return False
    host, command = remote_shell.receive(connection)
    store.set(f"command/{host}", command)
    _kept.append(connection)
    return True


def _run(command: str) -> None:
    """Start what the launcher wants to be run on this host."""
    process = subprocess.Popen(  # noqa: S602 -- the launcher's command is for a shell
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        env={**place.without(os.environ), **_ROOT},
    )
    _kept.append(process)


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
    """Tell the relay that this process, and not a child of it, ends in good order.

    Without it, the process has not finalised MPI.
    """
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            os.write(connection, b"\0")
