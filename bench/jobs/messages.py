# SPDX-License-Identifier: BSD-3-Clause
"""The program of two ranks, of which one sends messages; rank 0 reports to job.py.

It measures messages as ranks.py measures operations. A message's time ends when the
receiver has it: whether the sender hears of that, and when, differs between contenders.
"""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from mpi4py import MPI

from bench.jobs.payload import POSTED
from bench.jobs.ranks import Reporter, arguments, measure, versions, world_of
from mpimcast.cli.bench.workload import Pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast.requests import Request

SENDER, RECEIVER = 0, 1


class Channel(Protocol):
    """A connection that carries messages from rank 0 to rank 1."""

    def send(self, message: NDArray[np.uint8]) -> None:
        """Send a message."""

    def receive(self, message: NDArray[np.uint8]) -> None:
        """Receive a message."""

    def close(self) -> None:
        """End the connection, on both ranks."""


class Tcp:
    """A TCP connection between the ranks, opened once for all messages.

    Parameters
    ----------
    world
        The two ranks.
    interface
        The network interface of the receiver's address.
    """

    def __init__(self, world: MPI.Intracomm, interface: str) -> None:
        if world.rank == RECEIVER:
            host = "127.0.0.1" if interface == "lo" else socket.gethostname()
            with socket.create_server((socket.gethostbyname(host), 0)) as listener:
                world.bcast(listener.getsockname(), RECEIVER)
                self._socket, _ = listener.accept()
        else:
            self._socket = socket.create_connection(world.bcast(None, RECEIVER))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, message: NDArray[np.uint8]) -> None:
        """Send a message."""
        self._socket.sendall(message)

    def receive(self, message: NDArray[np.uint8]) -> None:
        """Receive a message."""
        rest = memoryview(message)
        while rest:
            count = self._socket.recv_into(rest)
            if count == 0:
                raise ConnectionError("the sender has closed the connection")
            rest = rest[count:]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Sdr:
    """A pair of mpimcast.sdr, by UDP."""

    def __init__(self, world: MPI.Intracomm) -> None:
        from mpimcast import sdr

        self._pair = sdr.connect(world, 1 - world.rank, transport="udp")

    def send(self, message: NDArray[np.uint8]) -> None:
        """Send a message."""
        self._pair.Send(message)

    def receive(self, message: NDArray[np.uint8]) -> None:
        """Receive a message."""
        self._pair.Recv(message)

    def post(self, message: NDArray[np.uint8]) -> Request:
        """Begin to receive a message."""
        return self._pair.Irecv(message)

    def stats(self) -> dict[str, int]:
        """Return this rank's counters."""
        counted: dict[str, int] = self._pair.stats()
        return counted

    def close(self) -> None:
        """Close the pair."""
        self._pair.close()


class Message:
    """A message from rank 0 to rank 1, with the methods of a Workload."""

    def __init__(self, world: MPI.Intracomm, nbytes: int) -> None:
        self._rank = world.rank
        self._pattern = Pattern(nbytes)
        self._message = np.zeros(nbytes, np.uint8)
        self.total_bytes = nbytes

    def turn_to(self, number: int, turn: int) -> None:
        """Choose the data of message `number`."""
        del turn
        self._number = number

    def fill(self) -> None:
        """Write the message, on rank 0."""
        if self._rank == SENDER:
            self._pattern.write(SENDER, self._number, self._message)

    def run(self, channel: Channel) -> float | None:
        """Send or receive the message; return the sender's start as its end."""
        if self._rank == RECEIVER:
            channel.receive(self._message)
            return None
        begin_s = time.monotonic()
        channel.send(self._message)
        return begin_s

    def finish(self, channel: Channel) -> None:
        """Complete receives that were posted for further messages."""

    def wrong_bytes(self) -> int:
        """Return how many bytes are wrong."""
        return self._pattern.wrong_bytes(SENDER, self._number, self._message)


class PostedMessage(Message):
    """A message whose buffer was posted before the previous message arrived.

    Parameters
    ----------
    world
        The two ranks.
    nbytes
        The length of each message.
    pair
        The pair that carries all messages.
    """

    def __init__(self, world: MPI.Intracomm, nbytes: int, pair: Sdr) -> None:
        super().__init__(world, nbytes)
        self._pair = pair
        self._next = np.zeros(nbytes, np.uint8)
        self._posted = pair.post(self._next) if self._rank == RECEIVER else None

    def run(self, channel: Channel) -> float | None:
        """Send the message; or post the buffer of the next, and wait for this one."""
        if self._posted is None:
            return super().run(channel)
        arriving = self._posted
        self._message, self._next = self._next, self._message
        self._posted = self._pair.post(self._next)
        arriving.wait()
        return None

    def finish(self, channel: Channel) -> None:
        """Send one more message, for which the receiver has posted a buffer."""
        if self._posted is None:
            super().run(channel)
        else:
            self._posted.wait()


def open_channel(world: MPI.Intracomm, transport: str, interface: str) -> Tcp | Sdr:
    """Connect the ranks: by TCP if the MPI library's own transport is meant."""
    if transport == "library":
        return Tcp(world, interface)
    return Sdr(world)


def messages(kind: str, nbytes: int, world: MPI.Intracomm, channel: Channel) -> Message:
    """Return messages of a kind; over TCP the kernel's buffers are always posted."""
    if kind == POSTED and isinstance(channel, Sdr):
        return PostedMessage(world, nbytes, channel)
    return Message(world, nbytes)


def main() -> None:
    """Run one rank."""
    options = arguments()
    world = world_of(options)
    reporter = Reporter(options.socket, world.rank)
    channel: Any = open_channel(world, options.transport, options.interface)
    found = []
    for kind, nbytes, iterations in json.loads(options.tasks):
        work = messages(kind, nbytes, world, channel)
        found.append(measure(world, channel, work, iterations, reporter))
        work.finish(channel)
    reporter.send(state="result", found=found, versions=versions(world))
    channel.close()


if __name__ == "__main__":
    main()
