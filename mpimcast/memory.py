# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose memory is ours, so that it may stay registered with RDMA devices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mpimcast import _ffi

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = float) -> NDArray[Any]:
    """Make an array as ``numpy.empty`` does, for results of collectives.

    Other ranks may have to read a result's memory, to repair what multicast has
    lost. Over verbs that takes a registration with the device, which is kept for
    these arrays, and made anew for every operation that needs one for others.

    Parameters
    ----------
    shape
        As numpy takes it.
    dtype
        Likewise; not Python objects.

    Returns
    -------
    numpy.ndarray
        Of arbitrary content. Its memory lives as long as it, or a view of it, does.

    Raises
    ------
    TransportError
        If there is no such memory.
    TypeError
        For a type whose values are Python objects.

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
        raise TypeError(f"memory for other ranks cannot hold objects, as {kind} does")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = kind.itemsize * math.prod(sizes)
    if nbytes == 0:
        return np.empty(sizes, kind)
    return np.frombuffer(_ffi.allocate(nbytes), kind).reshape(sizes)
