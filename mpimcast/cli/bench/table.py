# SPDX-License-Identifier: BSD-3-Clause
"""Prints a benchmark's report as lines of text, as OSU's or NCCL's benchmarks do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mpimcast.cli.bench.conclusion import conclude

if TYPE_CHECKING:
    from collections.abc import Iterator

    Report = dict[str, Any]

_WAYS = ("mpimcast", "mpi")
_TIMES = ("min", "median", "p99")


class Table:
    """The common part of all tables, each of which has a line for each size."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._path = self._told = ""

    def begin(self) -> Iterator[str]:
        """Yield the lines above everything else."""
        versions, ranks = self._report["versions"], self._report["ranks"]
        nhosts = len(set(self._report["hosts"]))
        arguments = self._report["arguments"]
        barrier = "a barrier" if arguments["pre_barrier"] else "no barrier"
        gap = f" and {arguments['gap_s']:g} s" if arguments["gap_s"] else ""
        yield f"# mpimcast {versions['mpimcast']} beside {versions['mpi']}"
        yield f"# {ranks} rank{_s(ranks)} on {nhosts} host{_s(nhosts)}"
        yield (
            f"# {arguments['iterations']} iterations after {arguments['warmup']} of "
            f"warm-up, {barrier}{gap} before each"
        )
        if self._report["time"].startswith("last"):
            yield "# times in us, from the last rank's start to the last rank's end"
        else:
            yield "# times in us, of the rank that spent the longest in the operation"

    def heading(self, collective: str) -> Iterator[str]:
        """Yield the heading of one collective."""
        arguments = self._report["arguments"]
        how = ", in place" if arguments["in_place"] else ""
        if collective.lower().endswith("bcast"):
            root = arguments["root"]
            how = ", each rank in turn as root" if root is None else f", root {root}"
        self._told = ""
        yield "#"
        yield f"# {collective}{how}"
        yield from self._columns(collective)

    def of(self, measured: Report) -> Iterator[str]:
        """Yield the line of one size; before it what carried it and why, if new."""
        self._path = measured["path"]
        told = f"# {self._path}: {measured['reason']}"
        if re.sub(r"\d+", "", told) != self._told:
            self._told = re.sub(r"\d+", "", told)
            yield told
        yield self._line(measured)

    def end(self) -> Iterator[str]:
        """Yield the conclusions, in a line for each collective."""
        yield "#"
        yield from (f"# {sentence}" for sentence in conclude(self._report["measured"]))

    def _columns(self, collective: str) -> Iterator[str]:
        raise NotImplementedError

    def _line(self, measured: Report) -> str:
        raise NotImplementedError

    def _wrong(self, wrong_bytes: int) -> str:
        return str(wrong_bytes) if self._report["arguments"]["verify"] else "-"


class Osu(Table):
    """The block's size, times, their ratio, bytes sent, and the overlap if any."""

    def heading(self, collective: str) -> Iterator[str]:
        """Yield the heading of one collective."""
        # The columns of bytes sent. A fixed root has its own, since it does not send as
        # many bytes as the other ranks.
        rooted = collective.lower().endswith("bcast")
        self._senders = {"sent": "sent_bytes_per_rank"}
        if rooted and self._report["arguments"]["root"] is not None:
            self._senders = {
                "root": "sent_bytes_root",
                "others": "sent_bytes_per_other_rank",
            }
        yield from super().heading(collective)

    def _columns(self, collective: str) -> Iterator[str]:
        overlap = collective.startswith("I")
        yield "# ratio: speed of mpimcast relative to the MPI library, by the medians"
        if "root" in self._senders:
            yield "# root: bytes that it sends in an operation; others: the mean of"
            yield "# the other ranks; * computed for a chain of ranks, payload only"
        else:
            yield "# sent: bytes that a rank sends in an operation, a mean over ranks;"
            yield "# * computed, payload only"
        if overlap:
            yield "# overlap: the share of an operation hidden behind computation"
        width = 13 * len(self._senders) - 1
        names = f"{' mpimcast ':-^{width}} {' library ':-^{width}}"
        hidden = f"{' mpimcast':>9} {'library':>12}" if overlap else ""
        yield (
            f"# {'bytes':>9} {'':4} {' mpimcast ':-^29} {' MPI library ':-^29} {'':6} "
            f"{names}{hidden}"
        )
        times = "".join(f" {name:>9}" for name in _TIMES * 2)
        sent = "".join(f" {name:>12}" for name in [*self._senders] * 2)
        hidden = f" {'overlap':>8} {'overlap':>12}" if overlap else ""
        yield (
            f"# {'per rank':>9} path{times} {'ratio':>6}{sent}{hidden} {'#wrong':>6}"
        )

    def _line(self, measured: Report) -> str:
        ways = [measured[name] for name in _WAYS]
        times = "".join(
            f" {1e6 * each[f'{name}_s']:9.1f}" for each in ways for name in _TIMES
        )
        sent = "".join(
            f" {each[name]:11.0f}{'*' if each['computed'] else ' '}"
            for each in ways
            for name in self._senders.values()
        )
        hidden = "".join(
            f" {each['overlap_percent']:{width}.0f}%"
            for each, width in zip(ways, (7, 11), strict=True)
            if "overlap_percent" in each
        )
        wrong = sum(each["wrong_bytes"] for each in ways)
        return (
            f"  {measured['block_bytes']:>9} {self._path:>4}{times} "
            f"{measured['ratio']:6.2f}{sent}{hidden} {self._wrong(wrong):>6}"
        )


class Nccl(Table):
    """The result's size, and each library's time, bandwidths and wrong bytes."""

    def _columns(self, collective: str) -> Iterator[str]:  # noqa: ARG002 -- all alike
        yield "# time: the median; GB are 10^9 bytes; busbw: what each link carries"
        group = f"{'time':>9} {'algbw':>7} {'busbw':>7} {'#wrong':>6}"
        names = f"{' mpimcast ':-^32} {' MPI library ':-^32}"
        yield f"# {'size':>11} {'':11} {'':5} {names}"
        yield f"# {'bytes':>11} {'count':>11} {'type':>5} {group} {group}"

    def _line(self, measured: Report) -> str:
        ways = " ".join(
            f"{1e6 * each['median_s']:9.1f} {each['algbw_bytes_per_s'] / 1e9:7.3f} "
            f"{each['busbw_bytes_per_s'] / 1e9:7.3f} "
            f"{self._wrong(each['wrong_bytes']):>6}"
            for each in (measured[name] for name in _WAYS)
        )
        return (
            f"  {measured['total_bytes']:>11} {measured['block_bytes']:>11} "
            f"{'uint8':>5} {ways}"
        )


FORMATS = {"osu": Osu, "nccl": Nccl}


def _s(count: int) -> str:
    return "" if count == 1 else "s"
