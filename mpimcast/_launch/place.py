# SPDX-License-Identifier: BSD-3-Clause
"""A process's place in an MPI job, as its launcher tells it.

Launchers tell it by environment variables: Open MPI's hold addresses of the launcher's
sockets, and MPICH's the numbers of open sockets. The process that initialises MPI need
not be the one that was launched: Open MPI's launcher accepts any process of the same
user, and MPICH's any that has the open socket.
"""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIXES = ("PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDI_", "MPI_LOCAL")

# Users configure their MPI library by variables with the same prefixes; these stay.
_USERS = ("OMPI_MCA_", "OMPI_ALLOW_", "PMIX_MCA_", "PRTE_MCA_")

# Launchers ask the batch system for hosts, if these say that there is one.
_BATCH_SYSTEMS = ("SLURM_", "PBS_", "LSB_", "SGE_", "PE_HOSTFILE")

# Variables that hold the number of a descriptor.
_DESCRIPTORS = ("PMI_FD", "HYDI_CONTROL_FD")


class Place(NamedTuple):
    """A place in an MPI job.

    Attributes
    ----------
    variables
        Environment variables by name, without those of `descriptors`.
    descriptors
        Descriptors that are open in this process, by the names of their variables.
    """

    variables: dict[str, str]
    descriptors: dict[str, int]

    def take(self) -> None:
        """Have this process's MPI library find the place when it is initialised."""
        for name in list(os.environ):
            if _is_launchers(name):
                del os.environ[name]
        os.environ.update(self.variables)
        for name, descriptor in self.descriptors.items():
            os.environ[name] = str(descriptor)


def own() -> Place:
    """Return the place that the launcher has given this process."""
    found = {k: v for k, v in os.environ.items() if k.startswith(_PREFIXES)}
    names = [name for name in _DESCRIPTORS if name in found]
    return Place(found, {name: int(found.pop(name)) for name in names})


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that no launcher or batch system started."""
    return {
        name: value
        for name, value in environment.items()
        if not _is_launchers(name) and not name.startswith(_BATCH_SYSTEMS)
    }


def send(connection: socket.socket, place: Place) -> None:
    """Send a place over a Unix socket. The receiver gets duplicates of descriptors."""
    text = json.dumps([place.variables, list(place.descriptors)])
    socket.send_fds(connection, [b"\0"], list(place.descriptors.values()))
    connection.sendall(text.encode() + b"\n")


def receive(connection: socket.socket) -> Place:
    """Return the place that `send` has sent. Its descriptors are this process's.

    Raises
    ------
    EOFError
        If the sender has ended before it had sent all.
    """
    _, descriptors, _, _ = socket.recv_fds(connection, 1, len(_DESCRIPTORS))
    with connection.makefile("rb") as file:
        line = file.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the relay has ended early")
    variables, names = json.loads(line)
    return Place(variables, dict(zip(names, descriptors, strict=True)))


def _is_launchers(name: str) -> bool:
    return name.startswith(_PREFIXES) and not name.startswith(_USERS)
