# SPDX-License-Identifier: BSD-3-Clause
"""Peer algorithms by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._peers import allgather, broadcast, reduce_scatter
from mpimcast._peers.neighbour import neighbour_exchange
from mpimcast._peers.recursive import k_nomial, recursive_doubling
from mpimcast._peers.two_level import two_level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._fabric.tree import Tree
    from mpimcast._peers.schedule import Schedule

# The k of the k-nomial exchange.
_RADIX = 4

# Each takes the group of each rank, such as its node or its rack, and the bytes of a
# block.
ALLGATHERS: dict[str, Callable[[Sequence[int], int], Schedule]] = {
    "ring": lambda groups, nbytes: allgather.ring(len(groups), nbytes),
    "recursive-doubling": lambda groups, nbytes: recursive_doubling(
        len(groups), nbytes
    ),
    "bruck": lambda groups, nbytes: allgather.bruck(len(groups), nbytes),
    "neighbour-exchange": lambda groups, nbytes: neighbour_exchange(
        len(groups), nbytes
    ),
    "k-nomial": lambda groups, nbytes: k_nomial(len(groups), nbytes, _RADIX),
    "linear": lambda groups, nbytes: allgather.linear(len(groups), nbytes),
    "two-level": two_level,
    "pat": lambda groups, nbytes: allgather.pat(len(groups), nbytes),
}

# The bytes of a block that a chain, or a switch that reduces, passes on at a time.
_CHAIN_BYTES, _REDUCED_BYTES = 65536, 8192

# Each takes the number of ranks, the bytes of the block, and the root.
BROADCASTS: dict[str, Callable[[int, int, int], Schedule]] = {
    "binomial": broadcast.binomial,
    "scatter-allgather": broadcast.scatter_allgather,
    "pipelined-chain": lambda nranks, nbytes, root: broadcast.pipelined_chain(
        nranks, nbytes, _CHAIN_BYTES, root
    ),
    "linear": broadcast.linear,
}

# Each takes the trees of all ranks, and the bytes of a block.
REDUCE_SCATTERS: dict[str, Callable[[Sequence[Tree], int], Schedule]] = {
    "reduce-scatter-ring": lambda trees, nbytes: reduce_scatter.ring(
        len(trees[0].ranks), nbytes
    ),
    "reduce-scatter-in-switches": lambda trees, nbytes: (
        reduce_scatter.reduced_in_switches(trees, nbytes, _REDUCED_BYTES)
    ),
}
