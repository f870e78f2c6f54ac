# SPDX-License-Identifier: BSD-3-Clause
"""What was measured: a line of JSON for each collective of each job.

A job is one launch of one contender. Jobs of different contenders take turns, and a
round is one turn of all contenders. A report is made from these lines alone.
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
        ``"cluster"``: hosts of network namespaces, a rank on each; ``"node"``: one
        machine; ``"verbs"``: one machine with RDMA devices in software.
    switches : int
        1, or 2 with a trunk between them.
    rate_mbit, trunk_mbit : int or None
        The links' rates in either direction, in Mbit/s; None: no limit.
    burst_bytes : int
        The bytes that an idle link carries at once, beyond its rate.
    loss : float
        The share of datagrams, or TCP segments, that every switch port drops.
    order : str
        ``"block"`` or ``"interleaved"``: the order of ranks on two switches.
    rival : bool
        Whether another host sent a TCP stream to rank 1's host throughout.
    """

    kind: str
    switches: int = 1
    rate_mbit: int | None = None
    trunk_mbit: int | None = None
    burst_bytes: int = 0
    loss: float = 0.0
    order: str = "block"
    rival: bool = False


@dataclass(frozen=True)
class Measurement:
    """One collective of one size in one job.

    Attributes
    ----------
    cell : str
        The part of the benchmark, a letter.
    contender : str
        The name of the contender, which says whose the operation was and how it was
        tuned; see bench.jobs.contenders.
    collective : str
        mpi4py's name; two names with a ``+`` between them ran side by side.
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
        Counts of what left each host (``host0``), each switch port to a host
        (``to0``) and each end of the trunk (``trunk0``) during the operations and the
        barriers between them: ``sent_bytes``, ``sent_frames``, ``dropped_frames``.
    lost : dict
        Counts of the injected loss: ``buffers`` of the kernel, and their ``bytes``.
    counters : dict
        mpimcast's counters for the operations, summed over ranks; empty for others.
    rival_bytes : int
        The bytes of the rival stream that arrived during the operations.
    span_s : float
        The seconds between the readings before and after all operations.
    wrong_bytes : int
        The wrong bytes on all ranks, in the operations that were checked.
    versions : dict
        The versions of the software that was measured.
    machine : dict
        The machine's processor, number of cores and kernel.
    load : list of float
        The machine's load average before and after.
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


# The names that fields have in measurements of earlier versions, and their names today.
_FORMERLY = {"way": "contender"}


def parse(line: str) -> Measurement:
    """Return the measurement of a line; raise ValueError if it is not one."""
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
