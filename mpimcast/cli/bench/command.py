# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast bench``: time collectives of mpimcast and of the MPI library.

Both take turns in one run, so that disturbances affect both alike. On one machine,
where all ranks share a clock, an operation's time runs from the last rank's start to
the last rank's end. Elsewhere it is the longest time that any rank spent in it,
including the wait for ranks that started later. Run it under a launcher; started
alone, it starts four ranks.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpimcast._mpi.library import load
from mpimcast._settings.config import Config
from mpimcast.cli import terminal
from mpimcast.cli.bench import table
from mpimcast.cli.bench.conclusion import conclude
from mpimcast.cli.bench.parser import make_parser
from mpimcast.cli.info import command as info
from mpimcast.cli.node import node_name
from mpimcast.cli.relaunch import relaunch
from mpimcast.errors import Error

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from mpimcast.cli.bench.measure import Plan
    from mpimcast.cli.bench.ranks import Ranks
    from mpimcast.comm import Intracomm

    Report = dict[str, Any]

# The prefixes of variables that a report shows, and of those that it must not show,
# since they would let others into a cluster.
_VARIABLES = ("MPIMCAST_", "OMPI_", "SLURM_")
_SECRETS = ("SLURM_JWT",)

# How much longer than TIMEOUT a rank that has failed waits for the others.
_PATIENCE_S = 2.0


def main(argv: list[str]) -> int:
    """Run the benchmark; return 1 if a rank failed or a byte was wrong."""
    options = make_parser(__doc__).parse_args(argv)
    relaunch("bench", argv)
    load()
    from mpi4py.run import set_abort_status

    try:
        return _bench(options)
    except Exception:
        set_abort_status(1)  # the other ranks would wait for this one
        raise


def _bench(options: argparse.Namespace) -> int:
    """Measure and report, on every rank."""
    from mpi4py import MPI

    from mpimcast.cli.bench.measure import WAYS
    from mpimcast.cli.bench.ranks import Ranks, complain
    from mpimcast.comm import Intracomm

    ranks = Ranks(MPI.Intracomm(MPI.COMM_WORLD), _patience_s())
    path = None if options.json in (None, "-") else Path(options.json)

    def prepare() -> Intracomm:
        _check_root(options.root, ranks.size)
        comm = Intracomm(ranks.library, **_settings())
        comm.stats()  # fails now if there is no C library
        if ranks.rank == 0 and path is not None:
            path.open("a").close()  # fails now, before the work
        return comm

    def write() -> None:
        if ranks.rank == 0 and path is not None:
            path.write_text(_json(report), encoding="utf-8")

    try:
        report = _measure_all(ranks, ranks.together(prepare), options)
        ranks.together(write)
    except Error as error:
        if ranks.rank == 0:
            complain(str(error))
        return 1
    if ranks.rank == 0 and options.json == "-":
        print(_json(report), end="")
    wrong_bytes = sum(
        each[way]["wrong_bytes"] for each in report["measured"] for way in WAYS
    )
    if wrong_bytes and ranks.rank == 0:
        complain(f"wrong bytes: {wrong_bytes}")
    return 1 if wrong_bytes else 0


def _check_root(root: int | None, size: int) -> None:
    if root is not None and root >= size:
        raise Error(f"there is no rank {root} among {size}")


def _patience_s() -> float:
    """Return how long to wait for ranks that fail once their TIMEOUT has passed."""
    with contextlib.suppress(Error):
        return Config.read({}).timeout + _PATIENCE_S
    return _PATIENCE_S


def _settings() -> dict[str, str]:
    """Return the settings of what is measured; the measurement itself compares ways."""
    return {"transport": _transport(), "choice": "always"}


def _transport() -> str:
    """Return the transports to measure; multicast even where auto would not take it."""
    return ",".join(Config.read({}).transports)


def _measure_all(ranks: Ranks, comm: Intracomm, options: argparse.Namespace) -> Report:
    """Measure all sizes; rank 0 shows the table as it grows."""
    from mpimcast.cli.bench.measure import Plan, measure

    collectives = [name for names in options.collectives for name in names]
    collectives = collectives or ["Allgather"]
    plan = Plan(
        iterations=options.iterations,
        warmup=options.warmup,
        in_place=options.in_place,
        root=options.root,
        verify=options.verify,
        pre_barrier=options.pre_barrier,
        gap_s=options.gap_s,
    )
    report = _surroundings(ranks, collectives, options.sizes, plan)
    total_bytes = len(collectives) * sum(options.sizes) * plan.nsteps
    is_shown = ranks.rank == 0 and options.json != "-"
    with terminal.bar(total_bytes, shown=is_shown) as bar:
        lines = table.FORMATS[options.format](report)
        _say(bar, lines.begin() if is_shown else ())
        for collective in collectives:
            _say(bar, lines.heading(collective) if is_shown else ())
            for nbytes in options.sizes:
                measured = measure(
                    ranks, comm, plan, collective, nbytes, advance=bar.advance
                )
                report["measured"].append(measured)
                _say(bar, lines.of(measured) if is_shown else ())
        report["conclusion"] = conclude(report["measured"])
        _say(bar, lines.end() if is_shown else ())
    report["opening"] = _opening(ranks, comm)
    report["load"]["after"] = ranks.library.allgather(os.getloadavg())
    report["end"] = _now()
    return report


def _say(bar: terminal.Bar, lines: Iterable[str]) -> None:
    for line in lines:
        bar.say(line)


def _surroundings(
    ranks: Ranks, collectives: list[str], sizes: list[int], plan: Plan
) -> Report:
    """Return the report before anything is measured."""
    found = info.gather(Config.read(_settings()))
    known = ("python", "mpi4py", "mpi")
    return {
        "arguments": {"collectives": collectives, "sizes": sizes, **asdict(plan)},
        "time": "last begin to last end" if ranks.share_clock else "longest in it",
        "begin": _now(),
        "end": None,
        "ranks": ranks.size,
        "hosts": ranks.library.allgather(node_name()),
        "versions": {
            "mpimcast": found["version"],
            "wire": found["built"]["wire_version"],
            **{name: found["found"][name] for name in known},
            "kernel": platform.release(),
            "machine": platform.machine(),
        },
        "settings": {each["name"]: each["value"] for each in found["settings"]},
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_VARIABLES) and name not in _SECRETS
        },
        "load": {"before": ranks.library.allgather(os.getloadavg()), "after": None},
        "opening": None,
        "measured": [],
        "conclusion": [],
    }


def _opening(ranks: Ranks, comm: Intracomm) -> Report:
    """Return the most that opening took on any rank; zeros if nothing was opened."""
    counters = ranks.library.allgather(comm.stats())
    most = {name: max(each[name] for each in counters) for name in counters[0]}
    return {
        "seconds": most["open_ns"] / 1e9,
        "messages": most["open_messages"],
        "bytes": most["open_bytes"],
    }


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _json(report: Report) -> str:
    return json.dumps(report, indent=1) + "\n"
