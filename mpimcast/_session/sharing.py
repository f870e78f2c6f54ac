# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of a node share: the segment, and its regions for streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._native import segment
from mpimcast._native.layout import Layout, Slots
from mpimcast._session.regions import Region, Regions, first_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._native.node import Node

# The slots that a stream may have, from the best on. Between nodes each slot costs an
# exchange, so they are larger there.
_ALONE = [*(Slots(4, 512 << 10 >> halved) for halved in range(4)), Slots(2, 64 << 10)]
_BETWEEN = [Slots(n, 8 << 20 >> halved) for halved in range(8) for n in (4, 2)]
_LEAST_BYTES = _BETWEEN[-1].nbytes
# A stream takes at most one part in this many of an empty segment.
_ALONE_SHARE = 30
_BETWEEN_SHARE = 3

_CELL_BYTES = 64  # each rank has at least these in a slot


class Proposal(NamedTuple):
    """A region that a node has for a stream, and the slots that fit into it."""

    region: Region
    slots: Slots

    def told(self) -> list[int]:
        """Return what other ranks need to know, for JSON."""
        return [self.region.offset_bytes, *self.slots]


class Agreed(NamedTuple):
    """Where a stream's memory begins on this node, and its slots on all nodes."""

    offset_bytes: int
    slots: Slots


class Keeper:
    """What the first rank of a node keeps for all of them: the regions of the segment.

    Parameters
    ----------
    fd, nbytes
        The segment.
    nrails
        The most rails that streams will have.
    """

    def __init__(self, fd: int, nbytes: int, nrails: int = 1) -> None:
        from mpimcast._native.node import HEAD_BYTES

        self._nrails = nrails

        self._clearing = segment.Clearing(fd, nbytes)
        self._regions = Regions(HEAD_BYTES, nbytes, self._clearing.clear)

    def propose(self, layout: Layout, rank: int) -> Proposal | None:
        """Take a region for a stream; return None if too little is left."""
        from mpimcast._native.node import stream_bytes

        alone = layout.nnodes == 1
        nmembers = len(layout.members(rank))
        least_bytes = len(layout.nodes) * _CELL_BYTES
        choices = _ALONE if alone else [_split(each, self._nrails) for each in _BETWEEN]
        large = [each for each in choices if each.nbytes >= least_bytes]
        choices = large or [Slots(2, least_bytes)]
        taken = first_fit(
            self._regions,
            [stream_bytes(nmembers, each) for each in choices],
            _ALONE_SHARE if alone else _BETWEEN_SHARE,
        )
        return None if taken is None else Proposal(taken[1], choices[taken[0]])

    def accept(self, proposal: Proposal, slots: Slots, nmembers: int) -> Region:
        """Keep only what these slots take of a proposal."""
        from mpimcast._native.node import stream_bytes

        return self._regions.trim(proposal.region, stream_bytes(nmembers, slots))

    def give_back(self, region: Region) -> None:
        """Give back a region that no rank uses any more."""
        self._regions.give_back(region)

    def close(self) -> None:
        """Release the view of the segment."""
        self._clearing.close()


def _split(slots: Slots, nrails: int) -> Slots:
    """Return slots that are halved until each rail has as many as one rail had.

    They are neither more than a stream may have, nor shorter than any.
    """
    from mpimcast._native.node import SLOTS_MAX

    number, nbytes = slots
    while (
        number < slots.number * nrails
        and 2 * number <= SLOTS_MAX
        and nbytes > _LEAST_BYTES
    ):
        number, nbytes = 2 * number, nbytes // 2
    return Slots(number, nbytes)


class Shared(NamedTuple):
    """This rank's part in its node.

    Attributes
    ----------
    layout : Layout
        All ranks and their nodes.
    rank : int
        This rank.
    node : Node
        Its view of the segment.
    keeper : Keeper or None
        On the first rank of the node, what gives regions to streams.
    crowded : bool
        Whether some machine has fewer processors than ranks.
    limit : str
        Why there are fewer rails than RAILS; empty if there are as many.
    """

    layout: Layout
    rank: int
    node: Node
    keeper: Keeper | None
    crowded: bool
    limit: str = ""

    def path(self, told: Sequence[str]) -> str:
        """Return in words how data gets to other nodes.

        Parameters
        ----------
        told
            What each rank has told of the device of its rail, by rank.
        """
        rails = [told[leader] for leader in self.layout.leaders(self.rank)]
        number = f"{len(rails)} rails: " if len(rails) > 1 else ""
        limit = f"; {self.limit}" if self.limit else ""
        return f"{number}{'; '.join(rails)}, between {self.layout}{limit}"

    def propose(self) -> Proposal | None:
        """Take a region for a stream, if this rank is the first of its node."""
        if self.keeper is None:
            return None
        return self.keeper.propose(self.layout, self.rank)

    def agree(self, proposals: Sequence[list[int] | None]) -> Agreed | None:
        """Return the memory of a stream, by what the ranks told of their proposals.

        Return None if some node has none. All nodes get the slots that each has.
        """
        told = [proposals[first] for first in self.layout.firsts()]
        if None in told:
            return None
        _, counts, sizes = zip(*told, strict=True)
        mine = told[self.layout.nodes[self.rank]]
        assert mine is not None  # noqa: S101 -- none of them is
        return Agreed(mine[0], Slots(min(counts), min(sizes)))

    def accept(self, proposal: Proposal | None, agreed: Agreed) -> Region | None:
        """Return the region of a stream, if this rank has proposed it."""
        if self.keeper is None or proposal is None:
            return None
        return self.keeper.accept(proposal, agreed.slots, self.node.nmembers)

    def give_back(self, region: Region | None) -> None:
        """Give back a region that no rank uses any more."""
        if self.keeper is not None and region is not None:
            self.keeper.give_back(region)

    def close(self) -> None:
        """Unmap the segment. Its streams must have been closed before."""
        self.node.close()
        if self.keeper is not None:
            self.keeper.close()
