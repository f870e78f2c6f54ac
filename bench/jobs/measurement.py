# SPDX-License-Identifier: BSD-3-Clause
"""Measurements, each kept as a line of JSON; a report is made from these lines alone.

A job is one launch of one contender, and has a measurement for each collective and
size. Jobs of different contenders take turns, and a round is one turn of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Network:
    """The network between the ranks.

    Attributes
    ----------
    kind : str
        ``"cluster"`` for hosts that are network namespaces; ``"node"`` for one
        machine; ``"verbs"`` for one with RDMA devices in software.
    switches : int
        1, or 2 with a trunk between them.
    rate_mbit, trunk_mbit : int or None
        The rates of links and trunk in each direction, in Mbit/s; None for no limit.
    burst_bytes : int
        The bytes that an idle link carries at once, beyond its rate.
    loss : float
        The share of datagrams, or TCP segments, that every switch port drops.
    order : str
        How ranks are spread over two switches: ``"block"``, the first half on the first
        switch, or ``"interleaved"``, alternately.
    rival : bool
        Whether another host sent a TCP stream to rank 1's host throughout.
    ranks_per_host : int
        The number of ranks on each host of a cluster.
    round_trip_ms : float
        The time of a frame to another host and back, if hosts are far from each other.
    loss_period : int
        How many frames in a row are lost, on average.
    """

    kind: str
    switches: int = 1
    rate_mbit: int | None = None
    trunk_mbit: int | None = None
    burst_bytes: int = 0
    loss: float = 0.0
    order: str = "block"
    rival: bool = False
    ranks_per_host: int = 1
    round_trip_ms: float = 0.0
    loss_period: int = 1


@dataclass(frozen=True)
class Measurement:
    """One collective of one size in one job.

    Attributes
    ----------
    cell : str
        The letter of the cell.
    contender : str
        The name of the contender; see bench.jobs.contenders.
    collective : str
        mpi4py's name. Collectives whose names have a ``+`` between them ran at the same
        time.
    nranks : int
        The number of ranks.
    block_bytes : int
        The bytes of each rank's block, or of the root's in a Bcast.
    round : int
        The number of the round.
    network : Network
        The network between the ranks.
    seconds : list of float
        Each operation's time, from the last rank's start to the last rank's end.
    processor_seconds : list of float
        The processor time that all ranks used in each operation.
    ports : dict
        By port, what left it during the operations and the barriers between them:
        ``sent_bytes``, ``sent_frames`` and ``dropped_frames``. Ports are each host's
        (``host0``), each switch's to a host (``to0``) and both ends of the trunk
        (``trunk0``).
    lost : dict
        Losses made on purpose: ``buffers`` of the kernel, and their ``bytes``. Between
        distant hosts the ``frames`` of the whole job instead, and those ``overflowed``.
    counters : dict
        mpimcast's counters for the operations, summed over ranks; empty for peers.
    rival_bytes : int
        The bytes of the TCP stream that arrived from before the first operation until
        after the last.
    span_s : float
        The seconds in which the bytes of `rival_bytes` arrived.
    wrong_bytes : int
        The wrong bytes on all ranks, in the operations that were checked.
    versions : dict
        The versions of the software that was measured.
    machine : dict
        The machine's processor, number of cores and kernel.
    load : list of float
        The machine's load average before and after the job.
    begin : str
        The time, in UTC, at which the job was launched.
    command : list of str
        The command that started the ranks, with paths relative to the checkout.
    """

    cell: str
    contender: str
    collective: str
    nranks: int
    block_bytes: int
    round: int
    network: Network
    seconds: list[float]
    processor_seconds: list[float]
    ports: dict[str, dict[str, int]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    rival_bytes: int = 0
    span_s: float = 0.0
    wrong_bytes: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    load: list[float] = field(default_factory=list)
    begin: str = ""
    command: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return the measurement as a line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))


# The present names of fields, by their names in measurements of earlier versions.
_FORMERLY = {"way": "contender"}


def parse(line: str) -> Measurement:
    """Return the measurement in a line; raise ValueError if the line holds none."""
    try:
        fields = json.loads(line).items()
        found = {_FORMERLY.get(name, name): value for name, value in fields}
        return Measurement(**{**found, "network": Network(**found["network"])})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a measurement: {error}: {line[:80]}") from error


def read(paths: Iterable[Path]) -> Iterator[Measurement]:
    """Yield the measurements of some files."""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            yield from (parse(line) for line in lines if line.strip())
