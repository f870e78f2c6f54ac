# SPDX-License-Identifier: BSD-3-Clause
"""Memory for the results of gathers, which is used again and again."""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from mpimcast.memory import empty

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Pool:
    """Tensors in memory of `mpimcast.empty`, which stays registered and mapped.

    A piece of memory returns to the pool when no tensor refers to it any more. No other
    process sees it: FSDP copies its shard to where the result goes before it calls, so
    that in memory which the ranks of a node share, a fast rank would overwrite what a
    slow one has yet to copy out.
    """

    def __init__(self) -> None:
        self._free: defaultdict[int, list[NDArray[Any]]] = defaultdict(list)

    def empty(self, nitems: int, dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor of arbitrary content."""
        nbytes = nitems * dtype.itemsize
        if nbytes == 0:
            return torch.empty(nitems, dtype=dtype)
        free = self._free[nbytes]
        memory = free.pop() if free else empty(nbytes, "u1")
        # The tensor's storage refers to `view`, and `view` to `memory`.
        view = memory[:]
        weakref.finalize(view, free.append, memory).atexit = False
        return torch.from_numpy(view).view(dtype)
