# SPDX-License-Identifier: BSD-3-Clause
"""What is kept of a measurement: a line of JSON for each collective of each job.

A job is one launch of one way; jobs of different ways take turns, and a round is one
turn of all. Everything that a report says is made of these lines alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Network:
    """What lay between the ranks.

    Attributes
    ----------
    kind : str
        ``"cluster"``: hosts of network namespaces, a rank on each; ``"node"``: one
        machine; ``"verbs"``: one machine with RDMA devices in software.
    switches : int
        1, or 2 with a trunk between them.
    rate_mbit, trunk_mbit : int or None
        What links carry either way, in Mbit/s; None: no limit.
    burst_bytes : int
        What an idle link carries at once, beyond its rate.
    loss : float
        The part of all datagrams, or segments of TCP, lost at every switch port.
    order : str
        ``"block"`` or ``"interleaved"``: how ranks lie on two switches.
    rival : bool
        Whether a stream of TCP from elsewhere came to the host of rank 1 all the time.
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
class Record:
    """One collective of one size in one job.

    Attributes
    ----------
    cell : str
        The part of the benchmark, a letter.
    way : str
        Whose operation, and how it was tuned; see bench.ways.
    collective : str
        mpi4py's name, or two with a ``+`` that run side by side.
    block_bytes : int
        Each rank's block; of a Bcast the root's.
    seconds : list of float
        Each operation's time, from the last rank's begin to the last rank's end.
    processor_seconds : list of float
        The time of processors that all ranks used in each.
    ports : dict
        What left each host (``host0``), each switch port to one (``to0``) and each
        end of the trunk (``trunk0``) during these operations and the barriers between
        them: ``sent_bytes``, ``sent_frames``, ``dropped_frames``.
    lost : dict
        What was made to get lost meanwhile: ``buffers`` of the kernel, ``bytes``.
    counters : dict
        Sums over ranks of what ours counted meanwhile; empty for others.
    rival_bytes : int
        How much of that stream arrived during these operations.
    span_s : float
        How long these operations took with all that lay between them.
    wrong_bytes : int
        On all ranks, of those operations that were looked at.
    load : list of float
        The machine's load average before and after.
    command : list of str
        How the ranks were started, with paths from the checkout.
    """

    cell: str
    way: str
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
        """Return it as a line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))


def parse(line: str) -> Record:
    """Return the record of a line; raise ValueError if it is not one."""
    found = json.loads(line)
    known = {each.name for each in fields(Record)}
    if not isinstance(found, dict) or not known >= set(found):
        raise ValueError(f"not a record: {line[:80]}")
    try:
        return Record(**{**found, "network": Network(**found["network"])})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a record: {error}: {line[:80]}") from error


def read(paths: Iterable[Path]) -> Iterator[Record]:
    """Yield the records of some files."""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            yield from (parse(line) for line in lines if line.strip())
