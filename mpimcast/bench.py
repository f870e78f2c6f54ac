# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast bench``: Allgather, ours and the MPI library's side by side.

Both take turns in one run, so that what disturbs one disturbs the other too; the
time of an operation is that of its slowest rank. Run it under a launcher; started
alone, it launches itself on four ranks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import socket
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpimcast import info, terminal
from mpimcast.config import Config, parse_size
from mpimcast.errors import Error
from mpimcast.launch import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast.comm import Intracomm
    from mpimcast.measure import Plan, Ranks

    Report = dict[str, Any]

# Variables that a report shows, but for what would let others into a cluster.
_VARIABLES = ("MPIMCAST_", "OMPI_", "SLURM_")
_SECRETS = ("SLURM_JWT",)

# What a rank that has failed waits for the others in excess of TIMEOUT.
_PATIENCE_S = 2.0


# ---- the command line --------------------------------------------------------


def main(argv: list[str]) -> int:
    """Run the benchmark; return 1 if a rank failed or a byte was wrong."""
    options = _parser().parse_args(argv)
    launch("bench", argv)
    from mpi4py.run import set_abort_status

    try:
        return _bench(options)
    except Exception:
        set_abort_status(1)  # the other ranks would wait for this one
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mpimcast bench", description=__doc__
    )
    add = parser.add_argument
    add(
        "--sizes",
        type=sizes,
        default="8:4M",
        metavar="LIST",
        help="bytes of each rank's block: numbers such as 1000 or 64K, and ranges of "
        "powers of two such as 8:4M, comma separated (default: %(default)s)",
    )
    add(
        "--iterations",
        type=_at_least(1),
        default=100,
        metavar="N",
        help="of each size (default: %(default)s)",
    )
    add(
        "--warmup",
        type=_at_least(0),
        default=10,
        metavar="N",
        help="iterations before those that count (default: %(default)s)",
    )
    add("--in-place", action="store_true", help="blocks lie in their places already")
    add(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="do not look at the data, which keeps ranks busy between operations",
    )
    add(
        "--pre-barrier",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="begin every operation with the library's barrier (the default)",
    )
    add(
        "--json",
        metavar="PATH",
        help="also write everything there; with -, to standard output in place of the "
        "table",
    )
    return parser


def sizes(text: str) -> list[int]:
    """Parse a list of sizes and ranges of powers of two."""
    try:
        return [size for part in text.split(",") for size in _range(part)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _range(text: str) -> list[int]:
    first, colon, last = text.partition(":")
    low, high = parse_size(first), parse_size(last if colon else first)
    if low < 1:
        raise ValueError(f"{text!r} begins below 1")
    if not colon:
        return [low]
    powers = [1 << bits for bits in range(high.bit_length()) if 1 << bits >= low]
    if not powers:
        raise ValueError(f"there is no power of two in {text!r}")
    return powers


def _at_least(low: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < low:
            raise argparse.ArgumentTypeError(f"{text} is below {low}")
        return int(text)

    return number


# ---- the run -----------------------------------------------------------------


def _bench(options: argparse.Namespace) -> int:
    """Measure and report, on every rank."""
    from mpi4py import MPI

    from mpimcast.comm import Intracomm
    from mpimcast.measure import WAYS, Ranks, complain

    ranks = Ranks(MPI.Intracomm(MPI.COMM_WORLD), _patience_s())
    path = None if options.json in (None, "-") else Path(options.json)
    try:
        with ranks.together():
            comm = Intracomm(ranks.library)
            comm.stats()  # which needs the C library
            if ranks.rank == 0 and path is not None:
                path.open("a").close()  # before the work: an error is told now
        report = _measure_all(ranks, comm, options)
        with ranks.together():
            if ranks.rank == 0 and path is not None:
                path.write_text(_json(report), encoding="utf-8")
    except Error as error:
        if ranks.rank == 0:
            complain(str(error))
        return 1
    if ranks.rank == 0 and options.json == "-":
        print(_json(report), end="")
    wrong_bytes = sum(
        each[way]["wrong_bytes"] for each in report["sizes"] for way in WAYS
    )
    if wrong_bytes and ranks.rank == 0:
        complain(f"wrong bytes: {wrong_bytes}")
    return 1 if wrong_bytes else 0


def _patience_s() -> float:
    """Return how long to wait for ranks that fail when their TIMEOUT is over."""
    with contextlib.suppress(Error):
        return Config.read({}).timeout + _PATIENCE_S
    return _PATIENCE_S


def _measure_all(ranks: Ranks, comm: Intracomm, options: argparse.Namespace) -> Report:
    """Measure all sizes; rank 0 shows the table as it grows."""
    from mpimcast.measure import Plan, measure

    plan = Plan(
        iterations=options.iterations,
        warmup=options.warmup,
        in_place=options.in_place,
        verify=options.verify,
        pre_barrier=options.pre_barrier,
    )
    report = _surroundings(ranks, options.sizes, plan)
    total_bytes = sum(options.sizes) * plan.nsteps
    is_shown = ranks.rank == 0 and options.json != "-"
    with terminal.bar(total_bytes, shown=is_shown) as bar:
        table = _Table(report, bar.say)
        if is_shown:
            table.begin()
        for nbytes in options.sizes:
            measured = measure(ranks, comm, plan, nbytes, bar.advance)
            report["sizes"].append(measured)
            if is_shown:
                table.show(measured)
    report["load"]["after"] = ranks.library.allgather(os.getloadavg())
    report["end"] = _now()
    return report


def _surroundings(ranks: Ranks, sizes: list[int], plan: Plan) -> Report:
    """Return the report without what is measured."""
    found = info.gather(Config.read({}))
    known = ("python", "mpi4py", "mpi")
    return {
        "collective": "Allgather",
        "arguments": {"sizes": sizes, **asdict(plan)},
        "begin": _now(),
        "end": None,
        "ranks": ranks.size,
        "hosts": ranks.library.allgather(socket.gethostname()),
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
        "sizes": [],
    }


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _json(report: Report) -> str:
    return json.dumps(report, indent=1) + "\n"


# ---- the table ---------------------------------------------------------------


class _Table:
    """The report as lines of text, one for each size, as OSU's benchmarks print."""

    def __init__(self, report: Report, say: Callable[[str], None]) -> None:
        self._report = report
        self._say = say
        self._path = ""

    def begin(self) -> None:
        """Print what stands above the columns."""
        versions, ranks = self._report["versions"], self._report["ranks"]
        nhosts = len(set(self._report["hosts"]))
        arguments = self._report["arguments"]
        plan = f"{arguments['iterations']} iterations after {arguments['warmup']}"
        place = ", in place" if arguments["in_place"] else ""
        barrier = "a barrier" if arguments["pre_barrier"] else "no barrier"
        for line in (
            f"mpimcast {versions['mpimcast']} beside {versions['mpi']}",
            f"Allgather{place}, {ranks} rank{_s(ranks)} on {nhosts} host{_s(nhosts)}",
            f"{plan}, {barrier} before each; time in us, of the slowest rank",
            "ratio: the library's median time by ours; above 1 ours is faster",
            "sent: bytes that a rank sends in one; * computed, payload only",
            "",
        ):
            self._say(f"# {line}".rstrip())
        self._say(
            f"# {'bytes':>9} {'':4} {' mpimcast ':-^29} {' MPI library ':-^29} {'':6} "
            f"{'mpimcast':>12} {'library':>12}"
        )
        times = ("min", "median", "p99")
        columns = "".join(f" {name:>9}" for name in (*times, *times))
        self._say(
            f"# {'per rank':>9} path{columns} {'ratio':>6} {'sent':>12} {'sent':>12} "
            f"{'#wrong':>6}"
        )

    def show(self, measured: Report) -> None:
        """Print the line of one size, and why it goes this way if that is new."""
        if measured["path"] != self._path:
            self._path = measured["path"]
            self._say(f"# {self._path}: {measured['reason']}")
        ways = [measured[name] for name in ("mpimcast", "mpi")]
        times = "".join(
            f" {1e6 * each[name]:9.1f}"
            for each in ways
            for name in ("min_s", "median_s", "p99_s")
        )
        sent = "".join(
            f" {each['sent_bytes_per_rank']:11.0f}{'*' if each['computed'] else ' '}"
            for each in ways
        )
        wrong = sum(each["wrong_bytes"] for each in ways)
        self._say(
            f"  {measured['block_bytes']:>9} {self._path:>4}{times} "
            f"{measured['ratio']:6.2f}{sent} "
            f"{wrong if self._report['arguments']['verify'] else '-':>6}"
        )


def _s(count: int) -> str:
    return "" if count == 1 else "s"
