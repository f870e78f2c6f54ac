# SPDX-License-Identifier: BSD-3-Clause
"""If ranks make different calls, all of them raise an error that says what differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gathering import require_two_ranks
from mpi4py import MPI

from mpimcast import Error, Intracomm

# The name of a collective, and its arguments.
Call = tuple[str, tuple[Any, ...]]


def bcast(_comm: Intracomm, count: int, root: int = 0) -> Call:
    """Return a call of Bcast of `count` doubles."""
    return "Bcast", (np.zeros(count), root)


def allgather(comm: Intracomm, count: int) -> Call:
    """Return a call of Allgather of `count` doubles a rank."""
    return "Allgather", (np.zeros(count), np.zeros(count * comm.size))


def allgatherv(comm: Intracomm, counts: list[int]) -> Call:
    """Return a call of Allgatherv of `counts[rank]` doubles by each rank."""
    send, recv = np.zeros(counts[comm.rank]), np.zeros(sum(counts))
    return "Allgatherv", (send, [recv, counts, MPI.DOUBLE])


# By the name of a difference: what makes a rank's call, given a number of doubles and
# whether this is the last rank, which differs from all others; and a pattern of what
# the error says of the others (`most`) and of the last rank.
CALLS: dict[str, tuple[Callable[[Intracomm, int, bool], Call], str]] = {
    "roots": (
        lambda comm, count, last: bcast(comm, count, comm.rank if last else 0),
        "root 0 on {most}, but root {last} on rank {last}; all must pass the same root",
    ),
    "sizes of a Bcast": (
        lambda comm, count, last: bcast(comm, count + last),
        (
            "data has {less} bytes on {most}, but {more} bytes on rank {last}; all "
            "must pass the same number of bytes"
        ),
    ),
    "sizes of an Allgather": (
        lambda comm, count, last: allgather(comm, count + last),
        (
            "blocks have {less} bytes on {most}, but {more} bytes on rank {last}; "
            "all must pass the same number of bytes"
        ),
    ),
    "counts": (
        # The last rank passes other counts with the same sum.
        lambda comm, count, last: allgatherv(
            comm, [count + last, count - last, *[count] * (comm.size - 2)]
        ),
        (
            "blocks have {less}, {less},? ?.* bytes on {most}, but {more}, .* bytes "
            "on rank {last}; all must pass the same counts"
        ),
    ),
    "Bcast, Allgather": (
        lambda comm, count, last: (bcast if last else allgather)(comm, count),
        (
            "Allgather on {most}, but Bcast on rank {last}; all must call the same "
            "collective"
        ),
    ),
    "Allgatherv, Bcast": (
        lambda comm, count, last: (
            allgatherv(comm, [count] * comm.size) if last else bcast(comm, count)
        ),
        (
            "Bcast on {most}, but Allgatherv on rank {last}; all must call the same "
            "collective"
        ),
    ),
}

# In shared memory these are not seen by all ranks: in a Bcast no rank waits for ranks
# other than the root, which waits for none.
HALF_SEEN = {"roots", "sizes of a Bcast", "Allgatherv, Bcast"}


def blocking(comm: Intracomm, name: str, arguments: tuple[Any, ...]) -> None:
    """Make a blocking call."""
    getattr(comm, name)(*arguments)


def all_in_order(comm: Intracomm, calls: list[Call]) -> None:
    """Make blocking calls until one fails."""
    for call in calls:
        blocking(comm, *call)


def by_request(comm: Intracomm, name: str, arguments: tuple[Any, ...]) -> None:
    """Make the non-blocking call, then wait for its request."""
    getattr(comm, f"I{name.lower()}")(*arguments).Wait()


def persistent(comm: Intracomm, name: str, arguments: tuple[Any, ...]) -> None:
    """Make a persistent request, start it, then wait for it."""
    request = getattr(comm, f"{name}_init")(*arguments)
    request.Start()
    request.Wait()


@pytest.mark.parametrize(
    ("way", "count"),
    [(blocking, 2), (blocking, 3000), (by_request, 3000), (persistent, 2)],
)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.network] if name in HALF_SEEN else [])
        for name in CALLS
    ],
)
def test_difference(
    make_opened: Callable[..., Intracomm],
    name: str,
    count: int,
    way: Callable[[Intracomm, str, tuple[Any, ...]], None],
) -> None:
    """All ranks raise the same reason, and the communicator cannot be used again.

    The calls differ in an operation of one chunk (2 doubles) or several (3000).
    """
    comm = make_opened()
    require_two_ranks(comm)
    call, text = CALLS[name]
    last = comm.size - 1
    most = f"ranks {', '.join(map(str, range(last)))}" if last > 1 else "rank 0"
    text = text.format(most=most, last=last, less=8 * count, more=8 * count + 8)
    with pytest.raises(Error, match=f"the ranks disagree: {text}") as caught:
        way(comm, *call(comm, count, comm.rank == comm.size - 1))
    assert f"rank {comm.rank} of {comm.size}" in str(caught.value)
    # Where two ranks differ, nothing says which of them is right.
    culprits = (last,) if comm.size > 2 else (0, 1)
    assert caught.value.ranks == culprits
    with pytest.raises(Error, match=rf"unusable .* since .*{text}") as caught:
        blocking(comm, *allgather(comm, 1))
    assert caught.value.ranks == culprits


@pytest.mark.network
@pytest.mark.parametrize("name", ["Allgather", "Bcast"])
def test_after_equal_bcasts(make_opened: Callable[..., Intracomm], name: str) -> None:
    """Ranks that disagree while no rank waits for another raise an error soon.

    A small Bcast that repeats the one before it may end on its root, and on ranks that
    agree with the root, before another rank's different call is known. They learn of it
    in a later one.
    """
    comm = make_opened()
    require_two_ranks(comm)
    last = comm.rank == comm.size - 1
    for _ in range(2):
        comm.Bcast(np.zeros(2), 0)
    differing = allgather(comm, 2) if name == "Allgather" else bcast(comm, 3)
    calls = [differing if last else bcast(comm, 2), *[bcast(comm, 2)] * 8]
    with pytest.raises(Error, match="the ranks disagree") as caught:
        all_in_order(comm, calls)
    assert f"rank {comm.rank} of {comm.size}" in str(caught.value)
