# SPDX-License-Identifier: BSD-3-Clause
"""Sums up a benchmark of mpimcast beside the MPI library, in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]


def conclude(measured: Sequence[Row]) -> list[str]:
    """Return a sentence per collective: which is faster, where, and bytes saved.

    Parameters
    ----------
    measured
        The results of `measure.measure` for each collective and size.
    """
    names = dict.fromkeys(row["collective"] for row in measured)
    return [
        f"{name}: {_sentence([row for row in measured if row['collective'] == name])}"
        for name in names
    ]


def _sentence(rows: Sequence[Row]) -> str:
    # There is nothing to compare where mpimcast left the data to the MPI library.
    ours = [row for row in rows if row["path"] != "mpi"]
    if not ours:
        return f"nothing was multicast ({rows[-1]['reason']})"
    return f"{_faster(ours)}; {_saved(ours)}"


def _faster(rows: Sequence[Row]) -> str:
    rows = sorted(rows, key=lambda row: row["block_bytes"])
    wins = [row["ratio"] > 1 for row in rows]
    ours = [row["ratio"] for row in rows if row["ratio"] > 1]
    theirs = [1 / row["ratio"] for row in rows if row["ratio"] <= 1]
    where = f"at {_span(rows)}"
    if not theirs:
        return f"mpimcast is {_times(ours)} as fast as the MPI library {where}"
    if not ours:
        return f"the MPI library is {_times(theirs)} as fast as mpimcast {where}"
    first = wins.index(True)
    if all(wins[first:]):
        size = _size(rows[first]["block_bytes"])
        return (
            f"from {size} on mpimcast is {_times(ours)} as fast as the MPI library; "
            f"below that, at {_span(rows[:first])}, the MPI library is "
            f"{_times(theirs)} as fast"
        )
    faster = ", ".join(
        _size(row["block_bytes"]) for row, win in zip(rows, wins, strict=True) if win
    )
    return (
        f"mpimcast is {_times(ours)} as fast as the MPI library at {faster}; at the "
        f"other sizes from {_span(rows)} the MPI library is {_times(theirs)} as fast"
    )


def _saved(rows: Sequence[Row]) -> str:
    """Return in words how many bytes fewer, or more, all ranks send together."""
    saved = [
        1 - row["mpimcast"]["sent_bytes_per_rank"] / row["mpi"]["sent_bytes_per_rank"]
        for row in rows
        if row["mpi"]["sent_bytes_per_rank"]
    ]
    if not saved:
        return "there is no other rank to send to"
    if all(row["path"] == "shm" for row in rows):
        return "nothing is sent between ranks that share memory"
    low, high = (round(100 * share) for share in (min(saved), max(saved)))
    if low >= 0:
        words = f"{_range(low, high)} % fewer bytes"
    elif high <= 0:
        words = f"{_range(-high, -low)} % more bytes"
    else:
        words = f"from {-low} % more to {high} % fewer bytes"
    return f"mpimcast sends {words} than computed for the MPI library"


def _times(ratios: Sequence[float]) -> str:
    low, high = f"{min(ratios):.2g}", f"{max(ratios):.2g}"
    return f"{_range(low, high)} times"


def _range(low: object, high: object) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def _span(rows: Sequence[Row]) -> str:
    return _range(*(_size(row["block_bytes"]) for row in (rows[0], rows[-1])))


def _size(nbytes: int) -> str:
    """Return a size for people, as a whole number of the greatest possible unit."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} bytes"
