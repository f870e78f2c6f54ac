# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in memory of mpimcast's own, which may be shared, or registered for RDMA."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._native import engine
from mpimcast._support.shared_memory import shared_memory

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from mpimcast.comm import Intracomm


def empty(
    shape: int | tuple[int, ...],
    dtype: DTypeLike = float,
    comm: Intracomm | None = None,
) -> NDArray[Any]:
    """Make an array as ``numpy.empty`` does, for the results of collectives.

    Over verbs its memory stays registered with the RDMA device, while other memory is
    registered for each operation that needs it. With `comm`, the ranks of each node
    share one array, into which collectives of `comm` deliver without a copy on any
    rank; see "Shared results" in the guide.

    Parameters
    ----------
    shape, dtype
        As for ``numpy.empty``, but no Python objects; equal on all ranks of `comm`.
    comm
        An `Intracomm`, for which the call is collective. Where its ranks share no
        memory, each gets an array of its own; `is_shared` tells which it is.

    Returns
    -------
    numpy.ndarray
        An array of arbitrary content. Its memory lives as long as the array or a view
        of it, on any rank.

    Raises
    ------
    Error
        If the ranks pass different shapes or dtypes, or memory cannot be allocated.
    TypeError
        If the values of `dtype` are Python objects, or `comm` is the MPI library's.

    Examples
    --------
    >>> blocks = mpimcast.empty((comm.size, 1000), "f4", comm=comm)
    >>> comm.Allgather(np.ones(1000, "f4"), blocks)
    >>> int(blocks.sum()) == 1000 * comm.size
    True
    """
    kind = _plain(dtype)
    sizes = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
    nbytes = kind.itemsize * math.prod(sizes)
    memory = None
    if comm is not None:
        memory = _share(comm, nbytes, f"shape {sizes} and dtype {kind}")
    if nbytes == 0:
        return np.empty(sizes, kind)
    return np.frombuffer(memory or engine.allocate(nbytes), kind).reshape(sizes)


def _plain(dtype: DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(
            f"mpimcast.empty cannot hold objects, as dtype {kind} does: choose a dtype "
            "of plain numbers, or use numpy.empty"
        )
    return kind


def _share(comm: Intracomm, nbytes: int, what: str) -> memoryview | None:
    from mpimcast.comm import Intracomm

    if not isinstance(comm, Intracomm):
        raise TypeError(
            f"comm is {type(comm).__name__}, whose collectives cannot deliver into "
            "shared memory: pass an mpimcast.Intracomm, and use its collectives"
        )
    return comm._share(nbytes, what)  # noqa: SLF001 -- our own class


def is_shared(array: NDArray[Any]) -> bool:
    """Return whether an array, or what it is a view of, is shared by a node's ranks.

    Parameters
    ----------
    array
        Any array.

    Returns
    -------
    bool
        True if `empty` has made it for ranks that share memory. Of one call of `empty`,
        all ranks get the same answer, even a rank that is alone on its node.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> blocks = mpimcast.empty((comm.size, 1000), "f4", comm=comm)
    >>> mpimcast.is_shared(blocks[0]) == mpimcast.is_shared(blocks)
    True
    >>> mpimcast.is_shared(np.empty(3))
    False
    """
    if array.size == 0:
        return False
    return shared_memory.find(array.__array_interface__["data"][0]) is not None
