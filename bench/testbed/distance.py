# SPDX-License-Identifier: BSD-3-Clause
"""Emulate hosts that are far from each other: their links are long, and lose frames.

::

    switch0            relay            host0      Each host's link passes through
      |to0  near0  +-----------+  far0  eth0|      the relay, where a program
      +------------| forwarder |------------+      (forwarder.c) holds back what the
      |to1  near1  |           |  far1  eth0|      switch sends to the host, and loses
      +------------|           |------------+      some of it. What the host sends
                   +-----------+        host1      passes at once.

So each way between two hosts takes the whole delay, and each receiver loses on its own.
The rates are those of the queues of hosts and switch, as in any other cluster.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.testbed.cluster import Cluster
from bench.testbed.host import Host

_SOURCE = Path(__file__).with_name("forwarder.c")
_ROOT = _SOURCE.parents[2]
_FLAGS = ("-std=c11", "-O2", "-D_GNU_SOURCE")
_LIMIT_S = 60

# A connection may have so many bytes under way: twice what 1 Gbit/s brings in 50 ms,
# and what the kernel needs for itself.
_TCP_BYTES = 32 << 20


class Passed(NamedTuple):
    """What became of the frames to one host.

    Attributes
    ----------
    passed : int
        Frames that reached the host.
    lost : int
        Frames that were lost on purpose.
    drawn : int
        Frames of UDP and TCP, which alone may be lost.
    overflowed : int
        Frames for which the relay had no room; none, unless it was too slow.
    trains : int
        Trains of several segments, which are passed or lost as a whole.
    """

    passed: int
    lost: int
    drawn: int
    overflowed: int
    trains: int


@dataclass(frozen=True)
class Distance:
    """How far hosts are from each other, and what is lost on the way.

    Attributes
    ----------
    round_trip_ms : float
        The time of a frame to another host and back, apart from queues.
    loss : float
        The share of the frames to each host that is lost.
    loss_period : int
        How many in a row are lost, on average; 1: losses are independent.
    seed : int
        What decides which frames are lost.
    """

    round_trip_ms: float
    loss: float = 0.0
    loss_period: int = 1
    seed: int = 1

    def arguments(self) -> list[str]:
        """Return the arguments of the forwarder that say this."""
        return [
            str(round(self.round_trip_ms * 500)),
            *(str(round(self.loss * 2**32)), str(self.loss_period), str(self.seed)),
        ]


class Crossing:
    """The forwarder while it runs, and after its end what it has counted.

    Attributes
    ----------
    hosts : list of Passed
        What became of the frames to each host, once the forwarder has ended.
    """

    def __init__(self) -> None:
        self.hosts: list[Passed] = []


class DistantCluster(Cluster):
    """A cluster of one switch whose hosts are reached only within `apart`."""

    _relay: Host

    def _connect(self) -> None:
        self._relay = Host("relay", self.head)
        self._folder = tempfile.TemporaryDirectory()
        self._program = Path(self._folder.name) / "forwarder"
        compiler = shutil.which("gcc") or "gcc"
        subprocess.run(
            [compiler, *_FLAGS, f"-I{_ROOT / 'ffi'}", _SOURCE, "-o", self._program],
            check=True,
            timeout=_LIMIT_S,
        )
        super()._connect()
        for host in self.hosts:
            host.run("sysctl", "--quiet", "--write", *_tcp_settings())

    def _link(self, one: Host, device: str, other: Host, other_device: str) -> None:
        if other not in self.hosts:
            super()._link(one, device, other, other_device)
            return
        number = self.hosts.index(other)
        super()._link(one, device, self._relay, f"near{number}")
        super()._link(self._relay, f"far{number}", other, other_device)
        for end in ("near", "far"):
            self._relay.run("ip", "link", "set", f"{end}{number}", "up")

    def close(self) -> None:
        """End all hosts and the processes in them."""
        super().close()
        self._relay.close()
        self._folder.cleanup()

    @contextlib.contextmanager
    def apart(self, distance: Distance) -> Iterator[Crossing]:
        """Connect the hosts over this distance until the end of the block.

        Yields what counts the frames.
        """
        ends = [f"{end}{i}" for i in range(len(self.hosts)) for end in ("near", "far")]
        crossing = Crossing()
        with subprocess.Popen(
            [*self._relay.enter(), self._program, *distance.arguments(), *ends],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as forwarder:
            if not forwarder.stdout or forwarder.stdout.readline() != "\n":
                raise RuntimeError("the forwarder has not started")
            try:
                yield crossing
            finally:
                said, _ = forwarder.communicate("", _LIMIT_S)
        crossing.hosts = [Passed(*map(int, line.split())) for line in said.splitlines()]

    def use_congestion_control(self, name: str) -> None:
        """Have new TCP connections of all hosts use this congestion control."""
        for host in self.hosts:
            host.run(
                *("sysctl", "--quiet", "--write"),
                f"net.ipv4.tcp_congestion_control={name}",
            )


def congestion_controls() -> list[str]:
    """Return the names of those that this machine's kernel has."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return available.read_text().split()


def _tcp_settings() -> list[str]:
    """Return the settings that let TCP fill a long link."""
    buffers = f"4096 131072 {_TCP_BYTES}"
    return [f"net.ipv4.tcp_{end}={buffers}" for end in ("rmem", "wmem")]
