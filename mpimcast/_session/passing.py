# SPDX-License-Identifier: BSD-3-Clause
"""Passes a segment's descriptor from the first rank of a host to its other ranks.

Ranks meet at a socket of the host's network namespace, whose name follows from what the
first rank has told all ranks. So does a secret, which both ends of a connection show
before a descriptor passes. Whoever does not know it, or runs under another user, is
refused, and keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import socket
import struct
import time
from typing import TYPE_CHECKING, NamedTuple

from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CREDENTIALS = struct.Struct("3i")  # struct ucred: process, user, group
_DESCRIPTOR = struct.Struct("i")
_PROOF_BYTES = hashlib.sha256().digest_size
_PAUSE_S = 0.001

# The most guests that have not yet shown the secret; a further one replaces the oldest.
_GUESTS_MAX = 64


class Proofs(NamedTuple):
    """What a guest and its host show each other, which only they can know."""

    guest: bytes
    host: bytes


def proofs(secret: str, guest: int, turn: int) -> Proofs:
    """Return what rank `guest` and the first rank of its host show each other.

    Parameters
    ----------
    secret
        What only the ranks of the communicator know.
    guest
        The rank.
    turn
        How often a descriptor was to be passed before.
    """
    words = (f"{who} {guest} {turn}".encode() for who in ("guest", "host"))
    return Proofs(*(hmac.digest(secret.encode(), word, "sha256") for word in words))


def address(secret: str) -> bytes:
    """Return the abstract address of the socket where the ranks of a host meet.

    It does not tell the secret.
    """
    name = hashlib.sha256(f"address {secret}".encode()).hexdigest()[:32]
    return f"\0mpimcast-{name}".encode()


class Door:
    """The socket of a host's first rank, at which it serves the host's other ranks.

    Parameters
    ----------
    secret
        What only the ranks of the communicator know.
    backlog
        How many guests may come before the first is served.
    """

    def __init__(self, secret: str, backlog: int) -> None:
        self._guests: list[socket.socket] = []
        self._socket = _new_socket()
        try:
            self._socket.bind(address(secret))
            self._socket.listen(backlog)
        except OSError as error:
            self._socket.close()
            raise TransportError(
                f"cannot meet the ranks of this host: {error.strerror}"
            ) from error
        self._socket.settimeout(0)

    def serve(self, fd: int, expected: Mapping[bytes, bytes]) -> None:
        """Pass `fd` to every guest that has come; wait for none.

        Parameters
        ----------
        fd
            The descriptor.
        expected
            For each guest's proof, the host's.
        """
        while True:
            try:
                guest, _ = self._socket.accept()
            except OSError:  # nobody is there, or has gone again
                break
            guest.settimeout(0)
            self._guests.append(guest)
            if len(self._guests) > _GUESTS_MAX:
                self._guests.pop(0).close()
        for guest in self._guests.copy():
            with contextlib.suppress(BlockingIOError):
                self._answer(guest, fd, expected)
                guest.close()
                self._guests.remove(guest)

    @staticmethod
    def _answer(guest: socket.socket, fd: int, expected: Mapping[bytes, bytes]) -> None:
        """Pass the descriptor to a guest that shows a proof; refuse any other.

        Raise BlockingIOError if it has shown nothing yet.
        """
        try:
            if peer_uid(guest) != os.geteuid():
                return
            shown = guest.recv(_PROOF_BYTES + 1)
            for proof, answer in expected.items():
                if hmac.compare_digest(shown, proof):
                    socket.send_fds(guest, [answer], [fd])
        except BlockingIOError:
            raise
        except OSError:
            return  # the guest has gone

    def close(self) -> None:
        """Close the socket and the connections of guests."""
        for each in (self._socket, *self._guests):
            each.close()
        self._guests.clear()


def fetch(secret: str, shown: Proofs, limit_s: float) -> int:
    """Return the descriptor that the first rank of this host passes to this rank.

    Raises
    ------
    TransportError
        If that rank cannot be reached, does not answer in time, or is a stranger.
    """
    until_s = time.monotonic() + limit_s
    with _new_socket() as host:
        try:
            _connect(host, address(secret), until_s)
            if peer_uid(host) != os.geteuid():
                raise TransportError(
                    "cannot share memory: another user has the first rank of this host"
                )
            host.settimeout(_left_s(until_s))
            host.send(shown.guest)
            return _receive(host, shown.host)
        except TimeoutError:
            raise TransportError(
                "cannot share memory: the first rank of this host has not passed it "
                f"within {limit_s:g} s"
            ) from None
        except OSError as error:
            raise TransportError(
                "cannot share memory with the first rank of this host: "
                f"{error.strerror or error}"
            ) from error


def peer_uid(connection: socket.socket) -> int:
    """Return the user of the process at the other end of a connection."""
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    _, user, _ = _CREDENTIALS.unpack(credentials)
    return int(user)


def _new_socket() -> socket.socket:
    """Return a socket whose messages keep their bounds."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _connect(host: socket.socket, where: bytes, until_s: float) -> None:
    while True:
        host.settimeout(_left_s(until_s))
        try:
            host.connect(where)
        except BlockingIOError:  # too many guests wait at the door
            time.sleep(_PAUSE_S)
        else:
            return


def _receive(host: socket.socket, proof: bytes) -> int:
    """Return the descriptor that comes with the host's proof."""
    # Unlike socket.recv_fds, this keeps the descriptor from programs that are started.
    shown, extra, _, _ = host.recvmsg(
        _PROOF_BYTES + 1, socket.CMSG_LEN(_DESCRIPTOR.size), socket.MSG_CMSG_CLOEXEC
    )
    fds = [
        _DESCRIPTOR.unpack(data)[0]
        for level, kind, data in extra
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
    ]
    if len(fds) == 1 and hmac.compare_digest(shown, proof):
        return int(fds[0])
    for fd in fds:
        os.close(fd)
    raise TransportError("cannot share memory: the first rank of this host refuses it")


def _left_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
