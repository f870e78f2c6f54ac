# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast demo``: gather a model's layers, one by one, as FSDP does.

Each rank holds its shard of every layer. All layers are gathered by UDP multicast with
1 % of the datagrams lost on purpose, again by the MPI library, and again into an array
that the ranks of a node share; every byte is compared. Started without a launcher, it
starts four ranks.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.table import Table

from mpimcast import __version__
from mpimcast._mpi.library import load
from mpimcast._settings.given import PREFIX
from mpimcast.cli import commands, terminal
from mpimcast.cli.demo import model
from mpimcast.cli.node import node_name
from mpimcast.cli.relaunch import relaunch
from mpimcast.errors import Error
from mpimcast.memory import empty, is_shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi4py import MPI
    from numpy.typing import NDArray

    from mpimcast.comm import Intracomm

    Report = dict[str, Any]

_SEED = 20241117
_SETTINGS: dict[str, object] = {
    "transport": "udp",
    "min_bytes": 0,
    "fault": f"loss=0.01,seed={_SEED}",
}
_HEADER_BYTES = 16
_DATA = ("multicast", "repair")  # the kinds of datagrams that carry payload


def main(argv: list[str]) -> int:
    """Run the demo; return 1 if a byte differs."""
    parser = commands.parser("demo", __doc__)
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="weights (.safetensors or .npz) instead of GPT-2 small's shapes",
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="also write the figures to this file"
    )
    options = parser.parse_args(argv)
    relaunch("demo", argv)
    try:
        layers = model.read_file(options.file) if options.file else None
    except (OSError, ValueError) as error:
        print(f"mpimcast demo: {error}", file=sys.stderr)
        return 2
    if layers is None:
        return _unshard("GPT-2 small", model.gpt2_small(_SEED), options.json)
    return _unshard(options.file.name, layers, options.json)


def _unshard(source: str, layers: Sequence[model.Layer], path: Path | None) -> int:
    """Gather all layers and report, on every rank."""
    load()
    from mpi4py import MPI

    from mpimcast.comm import Intracomm

    settings = {
        name: value
        for name, value in _SETTINGS.items()
        if PREFIX + name.upper() not in os.environ
    }
    comm = Intracomm(MPI.COMM_WORLD, **settings)
    library = MPI.Intracomm(MPI.COMM_WORLD)
    try:
        gathered = _gather_all(comm, library, layers)
    except Error as error:
        print(f"mpimcast demo, rank {comm.rank}: {error}", file=sys.stderr)
        return 1
    block_bytes = sum(-(-layer.nbytes // comm.size) for layer in layers)
    hosts = library.allgather(node_name())
    own_bytes = max(Counter(hosts).values()) * gathered.result_bytes
    shared_bytes = gathered.result_bytes if gathered.shares else own_bytes
    report: Report = {
        "version": __version__,
        "model": source,
        "layers": len(layers),
        "model_bytes": sum(layer.nbytes for layer in layers),
        "ranks": comm.size,
        "hosts": hosts,
        "path": str(comm.explain(block_bytes)),
        "settings": settings,
        "mpimcast": {
            **_times(library, gathered.ours_s, own_bytes),
            **_sent(library, comm),
        },
        "shared": _times(library, gathered.shared_s, shared_bytes),
        "mpi": {
            **_times(library, gathered.library_s, own_bytes),
            "payload_bytes_sent_per_rank": block_bytes * (comm.size - 1),
            "computed": ["payload_bytes_sent_per_rank"],
        },
        "different_bytes": library.allreduce(gathered.different_bytes),
    }
    if comm.rank == 0:
        _show(report)
        if path is not None:
            path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if report["different_bytes"] else 0


def _times(library: MPI.Intracomm, rank_s: float, node_bytes: int) -> Report:
    """Return the time that the ranks spent in calls, and the memory for results."""
    rank_seconds = library.allgather(rank_s)
    return {
        "seconds": max(rank_seconds),
        "rank_seconds": rank_seconds,
        "result_bytes_per_node": node_bytes,
    }


def _sent(library: MPI.Intracomm, comm: Intracomm) -> Report:
    """Return what the ranks sent by multicast, by the sums of their counters."""
    stats = comm.stats()
    total = {name: library.allreduce(stats[name]) for name in sorted(stats)}
    headers_bytes = _HEADER_BYTES * sum(total[f"tx_{kind}_datagrams"] for kind in _DATA)
    data_bytes = sum(total[f"tx_{kind}_bytes"] for kind in _DATA)
    sent_bytes = total["tx_control_bytes"] + data_bytes
    return {
        "payload_bytes_sent_per_rank": (data_bytes - headers_bytes) // comm.size,
        "datagram_bytes_sent_per_rank": sent_bytes // comm.size,
        "chunks_lost": total["rx_lost_chunks"],
        "chunks_repaired": total["rx_repaired_chunks"],
    }


class _Gathered(NamedTuple):
    """Results of this rank after gathering all layers in all ways.

    Attributes
    ----------
    ours_s, library_s, shared_s : float
        Time that this rank spent in the calls of mpimcast, of the MPI library, and of
        mpimcast with an array that ranks share.
    different_bytes : int
        How many bytes are not what the MPI library's Allgather gives.
    result_bytes : int
        The size of an array for results.
    shares : bool
        Whether ranks share memory.
    """

    ours_s: float
    library_s: float
    shared_s: float
    different_bytes: int
    result_bytes: int
    shares: bool


def _gather_all(
    comm: Intracomm, library: MPI.Intracomm, layers: Sequence[model.Layer]
) -> _Gathered:
    """Gather all layers in all ways."""
    nranks = comm.size
    largest_bytes = max(-(-layer.nbytes // nranks) for layer in layers) * nranks
    ours, theirs = np.empty((2, largest_bytes), np.uint8)
    sharing = type(comm)(library.Dup())
    shared = empty(largest_bytes, np.uint8, comm=sharing)
    ours_s, library_s, shared_s, different_bytes = 0.0, 0.0, 0.0, 0
    total_bytes = sum(layer.nbytes for layer in layers)
    with terminal.bar(total_bytes, shown=comm.rank == 0) as bar:
        for layer in layers:
            shard = model.shard_of(layer, comm.rank, nranks)
            places = [each[: shard.size * nranks] for each in (ours, theirs, shared)]
            # Bytes that are not written must not compare equal.
            places[0].fill(0x55)
            places[1].fill(0xAA)
            np.split(places[2], nranks)[comm.rank].fill(0x33)
            ours_s += _timed(library, comm, shard, places[0])
            library_s += _timed(library, library, shard, places[1])
            shared_s += _timed(library, sharing, shard, places[2])
            for place in (places[0], places[2]):
                different_bytes += int(np.count_nonzero(place != places[1]))
            sharing.node_barrier()
            bar.advance(layer.nbytes, layer.name)
    sharing.Free()
    times_s = ours_s, library_s, shared_s
    return _Gathered(*times_s, different_bytes, largest_bytes, is_shared(shared))


def _timed(
    library: MPI.Intracomm,
    comm: MPI.Intracomm,
    shard: NDArray[np.uint8],
    place: NDArray[np.uint8],
) -> float:
    """Return the seconds of an Allgather that all ranks begin together."""
    library.Barrier()
    begin_s = time.perf_counter()
    comm.Allgather(shard, place)
    return time.perf_counter() - begin_s


def _show(report: Report) -> None:
    """Print the table."""
    ours, theirs, shared = report["mpimcast"], report["mpi"], report["shared"]
    table = Table(
        title=f"{report['model']}: {report['layers']} layers, "
        f"{report['model_bytes']:,} bytes, on {report['ranks']} ranks",
        caption=report["path"],
    )
    table.add_column("Allgather by")
    table.add_column("mpimcast", justify="right")
    table.add_column("MPI library", justify="right")
    table.add_column("shared array", justify="right")
    rows = (
        ("seconds", *(f"{way['seconds']:.2f}" for way in (ours, theirs, shared))),
        (
            "memory for a result, a node",
            *(f"{way['result_bytes_per_node']:,}" for way in (ours, theirs, shared)),
        ),
        (
            "payload bytes sent per rank",
            f"{ours['payload_bytes_sent_per_rank']:,}",
            f"{theirs['payload_bytes_sent_per_rank']:,} (computed)",
        ),
        (
            "datagram bytes sent per rank",
            f"{ours['datagram_bytes_sent_per_rank']:,}",
            "",
        ),
        ("chunks lost, all ranks", f"{ours['chunks_lost']:,}", ""),
        ("chunks repaired, all ranks", f"{ours['chunks_repaired']:,}", ""),
        ("bytes that differ, all ranks", f"{report['different_bytes']:,}", ""),
    )
    for row in rows:
        table.add_row(*row)
    terminal.console().print(table)
    equal = "every byte is equal" if not report["different_bytes"] else "BYTES DIFFER"
    print(f"{equal}; on a single machine compare the bytes sent, not the times")
