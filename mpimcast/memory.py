# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in memory of mpimcast's own, which may stay registered with RDMA devices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast._native import engine

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> NDArray[Any]:
    """Make an array as ``numpy.empty`` does, for the results of collectives.

    Over verbs, a rank repairs what multicast has lost by reading it from its
    neighbour's result, whose memory must be registered with the RDMA device. Memory of
    these arrays stays registered. Memory of other arrays is registered anew for each
    operation that needs it.

    Parameters
    ----------
    shape
        As for ``numpy.empty``.
    dtype
        As for ``numpy.empty``, but not Python objects.

    Returns
    -------
    numpy.ndarray
        An array of arbitrary content. Its memory lives as long as the array or a view
        of it.

    Raises
    ------
    TransportError
        If the memory cannot be allocated.
    TypeError
        If the values of `dtype` are Python objects.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> blocks = mpimcast.empty((comm.size, 1000), "f4")
    >>> comm.Allgather(np.ones(1000, "f4"), blocks)
    >>> int(blocks.sum()) == 1000 * comm.size
    True
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(
            f"mpimcast.empty cannot hold objects, as dtype {kind} does: choose a dtype "
            "of plain numbers, or use numpy.empty"
        )
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = kind.itemsize * math.prod(sizes)
    if nbytes == 0:
        return np.empty(sizes, kind)
    return np.frombuffer(engine.allocate(nbytes), kind).reshape(sizes)
