# SPDX-License-Identifier: BSD-3-Clause
"""The payload of a collective: the data that each host has to receive."""

from __future__ import annotations

# A step of FSDP2: forward and backward of so many equal layers. A block is a rank's
# shard of a layer as it is gathered, in both passes. In a mixed step these are 16-bit
# numbers, and gradients are reduced as 32-bit ones.
STEP, MIXED = "FSDP2-step", "FSDP2-step-mixed"
STEPS = (STEP, MIXED)
LAYERS = 4

# A message from one rank to another is no collective, but is measured as one. The
# receiver of posted messages posts each buffer before the previous message arrives.
MESSAGE, POSTED = "message", "posted-message"
MESSAGES = (MESSAGE, POSTED)

# How many blocks of each other rank a host has to receive, beside those gathered, to
# reduce them.
_REDUCED = {STEP: LAYERS, MIXED: 2 * LAYERS}


def payload_bytes(
    collective: str, nranks: int, block_bytes: int, ranks_per_host: int = 1
) -> int:
    """Return the bytes that each host has to receive, without headers.

    Parameters
    ----------
    collective
        mpi4py's name. Collectives whose names have a ``+`` between them run at the same
        time, and a host receives as much for each. Or one of STEPS or of MESSAGES.
    nranks
        The number of ranks.
    block_bytes
        The bytes of each rank's block, or of the root's in a Bcast.
    ranks_per_host
        The number of ranks on each host, which have each other's blocks already.
    """
    reduced = _REDUCED.get(collective, int("+" in collective))
    gathered = gathered_bytes(collective, nranks, block_bytes, ranks_per_host)
    return gathered + reduced * block_bytes * (nranks - ranks_per_host)


def gathered_bytes(
    collective: str, nranks: int, block_bytes: int, ranks_per_host: int = 1
) -> int:
    """Return the bytes that each host has to receive as they are, not reduced.

    Parameters
    ----------
    collective, nranks, block_bytes, ranks_per_host
        As for `payload_bytes`.
    """
    if collective.endswith("cast"):
        return block_bytes
    gathers = 2 * LAYERS if collective in STEPS else 1
    return gathers * block_bytes * (nranks - ranks_per_host)
