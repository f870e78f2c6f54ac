# SPDX-License-Identifier: BSD-3-Clause
"""The payload of a collective: the data that each host has to receive."""

from __future__ import annotations


def payload_bytes(
    collective: str, nranks: int, block_bytes: int, ranks_per_host: int = 1
) -> int:
    """Return the bytes that each host has to receive, without headers.

    Parameters
    ----------
    collective
        mpi4py's name. Collectives whose names have a ``+`` between them run at the same
        time, and a host receives as much for each.
    nranks
        The number of ranks.
    block_bytes
        The bytes of each rank's block, or of the root's in a Bcast.
    ranks_per_host
        The number of ranks on each host, which have each other's blocks already.
    """
    if collective.endswith("cast"):
        return block_bytes
    return block_bytes * (nranks - ranks_per_host) * (1 + ("+" in collective))
