# SPDX-License-Identifier: BSD-3-Clause
"""The conclusion of ``python -m mpimcast bench``."""

from __future__ import annotations

from typing import Any

import pytest

from mpimcast.cli.bench.conclusion import conclude


def row(nbytes: int, ratio: float, ours: float, theirs: float) -> dict[str, Any]:
    """Return the part of a measurement that a conclusion reads.

    `ratio` is the MPI library's time as a multiple of mpimcast's; `ours` and `theirs`
    are the bytes that a rank sent.
    """
    return {
        "collective": "Bcast",
        "block_bytes": nbytes,
        "path": "udp",
        "reason": "",
        "ratio": ratio,
        "mpimcast": {"sent_bytes_per_rank": ours},
        "mpi": {"sent_bytes_per_rank": theirs},
    }


# A size that mpimcast leaves to the MPI library.
BY_LIBRARY = row(8, 9.0, 100, 100) | {"path": "mpi", "reason": "below MIN_BYTES"}

# mpimcast is faster at every size, slower at every size, faster from some size on, and
# faster up to some size.
FASTER = [BY_LIBRARY, row(1024, 1.5, 26, 100), row(2048, 2, 30, 100)]
SLOWER = [row(1000, 0.5, 110, 100), row(1 << 20, 0.8, 110, 100)]
LATER = [row(4096, 3, 90, 100), row(1024, 0.5, 101, 100), row(2048, 1.25, 90, 100)]
EARLIER = [row(1024, 2, 50, 100), row(2048, 0.25, 50, 100)]


@pytest.mark.parametrize(
    ("rows", "faster", "saved"),
    [
        ([BY_LIBRARY], "nothing was multicast (below MIN_BYTES)", ""),
        (
            FASTER,
            "mpimcast is 1.5 to 2 times as fast as the MPI library at 1 KiB to 2 KiB",
            "70 to 74 % fewer bytes",
        ),
        (
            SLOWER,
            "the MPI library is 1.2 to 2 times as fast as mpimcast at 1000 bytes to 1 ",
            "10 % more bytes",
        ),
        (
            LATER,
            "from 2 KiB on mpimcast is 1.2 to 3 times as fast as the MPI library; ",
            "from 1 % more to 10 % fewer bytes",
        ),
        (LATER, "below that, at 1 KiB, the MPI library is 2 times as fast", "fewer"),
        (
            EARLIER,
            "mpimcast is 2 times as fast as the MPI library at 1 KiB",
            "50 % fewer",
        ),
        (
            EARLIER,
            "the other sizes from 1 KiB to 2 KiB the MPI library is 4 times as fast",
            "",
        ),
        ([row(1024, 1.5, 10, 0)], "1.5 times", "there is no other rank to send to"),
    ],
)
def test_conclusion(rows: list[dict[str, Any]], faster: str, saved: str) -> None:
    """The sentence says which library is faster, at which sizes, and by how much.

    It also says how many bytes mpimcast saved.
    """
    (sentence,) = conclude(rows)
    assert sentence.startswith("Bcast: ")
    assert faster in sentence
    assert saved in sentence.rpartition("; ")[2]
