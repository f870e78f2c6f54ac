# SPDX-License-Identifier: BSD-3-Clause
"""Prints what carried a program's collectives, at the end of ``run --summary``.

Rank 0 prints it for all ranks if all reach their ends in time; else each rank prints
its own. Printing is the last thing that Python does, so that it also counts the calls
of threads and of other exit handlers.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mpi4py import MPI
from rich.table import Table

from mpimcast._mpi.agreement import exchange
from mpimcast._mpi.completion import complete
from mpimcast._mpi.private import Private
from mpimcast._settings.config import Config
from mpimcast.cli import terminal
from mpimcast.cli.run.tally import LIBRARY, Tally
from mpimcast.errors import Error, TimedOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Fact = dict[str, Any]

_WAYS = {
    "shm": "shared memory",
    "udp": "multicast, udp",
    "verbs": "multicast, verbs",
    LIBRARY: "MPI library",
}
_LIMIT_S = 10.0


class Summary:
    """The counts of this process from here on, which are printed at its end.

    Attributes
    ----------
    alone : bool
        Whether this rank prints its own counts without asking the other ranks, which
        may wait for it elsewhere.
    """

    def __init__(self) -> None:
        self.alone = False
        self._tally = Tally()
        self._tally.watch()
        self._world = MPI.Intracomm(MPI.COMM_WORLD)
        self._rank, self._size = self._world.rank, self._world.size
        self._pid = os.getpid()
        self._begin_s = time.monotonic()
        self._ended = False
        # Python's end comes before MPI's, unless the program calls MPI.Finalize().
        atexit.register(self._end)
        keyval = MPI.Comm.Create_keyval(delete_fn=lambda *_: self._end())
        MPI.COMM_SELF.Set_attr(keyval, self)

    def _end(self) -> None:
        """Print once, on rank 0 or on each rank."""
        if self._ended or os.getpid() != self._pid:  # a child of fork() prints nothing
            return
        self._ended = True
        mine = self._fact()
        whose = f"rank {self._rank} of {self._size} alone"
        if self.alone:
            _print([mine], whose)
            return
        limit_s = _LIMIT_S
        with suppress(Error):
            limit_s = Config.read({}).timeout
        try:
            facts = self._gather(mine, limit_s)
        except TimedOut:
            _print([mine], f"{whose}, as others did not end within {limit_s:g} s")
            return
        if self._rank == 0:
            _print(facts, f"{self._size} rank{'' if self._size == 1 else 's'}")

    def _gather(self, mine: Fact, limit_s: float) -> list[Fact]:
        """Return the facts of all ranks, on all ranks."""
        private, request = MPI.Intracomm.Idup(self._world)
        what = "the summary at the program's end"
        complete(request, limit_s, what)
        return exchange(Private(private), mine, limit_s)

    def _fact(self) -> Fact:
        """Return this rank's counts, fit for JSON."""
        return {
            "seconds": time.monotonic() - self._begin_s,
            "sent_bytes": self._tally.sent_bytes(),
            "counts": [
                [*key, each.calls, each.nbytes, each.spent_ns, each.unicast_bytes]
                for key, each in self._tally.counts.items()
            ],
        }


def _print(facts: Sequence[Fact], whose: str) -> None:
    """Print the summary of some ranks on standard error, in one piece."""
    console = terminal.console(stderr=True)
    with console.capture() as captured:
        for each in report(facts, whose):
            console.print(each, soft_wrap=isinstance(each, str))
    print(captured.get(), end="", file=sys.stderr, flush=True)


def report(facts: Sequence[Fact], whose: str) -> Iterator[Table | str]:
    """Yield the parts of the summary of some ranks.

    Parameters
    ----------
    facts
        Each rank's counts.
    whose
        The words for these ranks.
    """
    title = f"mpimcast run: {whose}, {max(fact['seconds'] for fact in facts):.1f} s"
    sums = _sums(facts)
    if not sums:
        yield f"{title}: no collective was called"
        return
    yield title
    reasons = list(dict.fromkeys(why for _, _, why in sums if why))
    table = Table()
    table.add_column("collective")
    table.add_column("carried by")
    for name in ("calls", "result bytes", "seconds"):
        table.add_column(name, justify="right")
    for (name, way, why), row in sums.items():
        note = f" ({1 + reasons.index(why)})" if why else ""
        table.add_row(name, f"{_WAYS.get(way, way)}{note}", *_numbers(row, len(facts)))
    yield table
    yield from (f"({index}) {why}" for index, why in enumerate(reasons, 1))
    yield _savings(facts)
    each = "means over the ranks" if len(facts) > 1 else "this rank's"
    yield (
        f"Calls, bytes and seconds are {each}; calls that do not wait count with the "
        "time that it took to start them."
    )


def _sums(facts: Sequence[Fact]) -> dict[tuple[str, str, str], list[float]]:
    """Return each kind's sums over ranks: multicast ones first, then by time spent."""
    sums: dict[tuple[str, str, str], list[float]] = {}
    for fact in facts:
        for name, way, why, *numbers in fact["counts"]:
            row = sums.setdefault((name, way, why), [0.0] * len(numbers))
            row[:] = map(sum, zip(row, numbers, strict=True))
    return dict(sorted(sums.items(), key=lambda each: (each[0][2] != "", -each[1][2])))


def _numbers(row: Sequence[float], nranks: int) -> tuple[str, str, str]:
    """Return a line's calls, bytes and seconds as texts, the means of the ranks."""
    calls, nbytes, spent_ns, _ = (each / nranks for each in row)
    return (
        f"{calls:,.0f}" if calls.is_integer() else f"{calls:,.1f}",
        f"{nbytes:,.0f}" if nbytes else "",
        f"{1e-9 * spent_ns:,.3f}",
    )


def _savings(facts: Sequence[Fact]) -> str:
    """Return a comparison of the bytes sent with those the MPI library would send."""
    sent_bytes = sum(fact["sent_bytes"] for fact in facts)
    unicast_bytes = sum(
        each[-1] for fact in facts for each in fact["counts"] if each[1] != "shm"
    )
    if not unicast_bytes:
        return "Nothing was multicast."
    saved_bytes = unicast_bytes - sent_bytes
    share = abs(saved_bytes) / unicast_bytes
    than = "fewer" if saved_bytes >= 0 else "more"
    whose = "all ranks" if len(facts) > 1 else "this rank"
    return (
        f"Bytes sent by {whose} for what was multicast, with headers and repairs: "
        f"{sent_bytes:,}; {abs(saved_bytes):,.0f} ({share:.0%}) {than} than the "
        f"{unicast_bytes:,.0f} computed for a ring (Allgather) or a binomial tree "
        "(Bcast)."
    )
