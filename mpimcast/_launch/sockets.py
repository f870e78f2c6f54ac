# SPDX-License-Identifier: BSD-3-Clause
"""Unix sockets between processes of one user and host, which leave no file behind."""

from __future__ import annotations

import os
import socket
import struct

# The peer's process, user and group, as the kernel knows them.
_CREDENTIALS = struct.Struct("3i")


def listen(token: str, purpose: object) -> socket.socket:
    """Return a socket that listens under an abstract name.

    Parameters
    ----------
    token
        A secret that the processes of one job share.
    purpose
        A name that no other socket of the job on this host has.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(_name(token, purpose))
    listener.listen(socket.SOMAXCONN)
    return listener


def connect(token: str, purpose: object) -> socket.socket:
    """Return a connection to a socket that `listen` has returned in another process."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_name(token, purpose))
    return connection


def accept(listener: socket.socket) -> socket.socket | None:
    """Return the next connection, or None if it is of another user."""
    connection, _ = listener.accept()
    option = socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(*option))
    if user == os.getuid():
        return connection
    connection.close()
    return None


def _name(token: str, purpose: object) -> str:
    return f"\0mpimcast-{token}-{purpose}"
