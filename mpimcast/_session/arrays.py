# SPDX-License-Identifier: BSD-3-Clause
"""Makes the memory of arrays that the ranks of each node share.

It is a file without a name, which the first rank of a node creates, and whose
descriptor it passes to the others as it does with the node's segment. Once all have
mapped it nobody keeps a descriptor: the kernel frees the memory with the last mapping,
however the processes end.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._mpi.agreement import act_on_all, exchange
from mpimcast._native import engine, segment
from mpimcast._session import passing
from mpimcast._support.naming import listed, minority
from mpimcast._support.shared_memory import SharedMemory, shared_memory
from mpimcast.errors import Error, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._mpi.private import Private
    from mpimcast._native.layout import Layout
    from mpimcast._settings.config import Config

# The share of TIMEOUT for which a rank waits for the descriptor. The others wait for
# that rank meanwhile.
_FETCH_SHARE = 0.5

# Numbers leave room for the offsets that are added to them.
_NUMBER_BITS = 62


def members(comm: MPI.Intracomm, layout: Layout | None) -> frozenset[object]:
    """Return what stands for the processes of this rank's node.

    It is equal for communicators whose ranks on this node are the same processes.

    Parameters
    ----------
    comm
        A communicator.
    layout
        Its nodes; None if no ranks share memory, for which the result is empty.
    """
    if layout is None:
        return frozenset()
    group, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    try:
        ranks = group.Translate_ranks(layout.members(comm.Get_rank()), world)
    finally:
        group.Free()
        world.Free()
    if MPI.UNDEFINED in ranks:
        # Processes outside COMM_WORLD have no numbers; nothing else equals this.
        return frozenset([object()])
    return frozenset(ranks)


class Making:
    """The making of one array's memory, on all ranks or on none.

    Parameters
    ----------
    private
        The communicator for mpimcast's own messages.
    config
        The settings.
    layout
        Which ranks share memory; None if none do.
    node
        What stands for the processes of this rank's node.
    """

    def __init__(
        self,
        private: Private,
        config: Config,
        layout: Layout | None,
        node: frozenset[object],
    ) -> None:
        self._private = private
        self._config = config
        self._rank = private.Get_rank()
        self._members = () if layout is None else layout.members(self._rank)
        self._node = node
        self._door: passing.Door | None = None
        self._fd = -1
        self._expected: dict[bytes, bytes] = {}
        self._meanwhile: Callable[[], None] = lambda: None

    def make(
        self, nbytes: int, what: str, meanwhile: Callable[[], None]
    ) -> memoryview | None:
        """Make the memory, if ranks share some and `nbytes` is not 0. Collective.

        Parameters
        ----------
        nbytes, what
            Its size, and the array in words, which must be equal on all ranks.
        meanwhile
            Called again and again while this rank waits.

        Raises
        ------
        Error
            The same on all ranks, if they disagree or some rank fails.
        """
        if not self._members:
            return None
        self._meanwhile = meanwhile
        try:
            facts = self._together(lambda: (None, self._introduce(what)))[1]
            told = {rank: fact["what"] for rank, fact in enumerate(facts)}
            if len(set(told.values())) > 1:
                raise Error(
                    f"the ranks disagree: an array of {listed(told)}; all must pass "
                    "the same shape and dtype",
                    ranks=minority(told),
                )
            if nbytes == 0:
                return None
            secret = facts[self._members[0]]["secret"]
            mapped, _ = self._together(lambda: (self._map(nbytes, secret), None))
        finally:
            self._close()
        end = mapped.address + nbytes
        number = facts[0]["number"]
        shared_memory.add(SharedMemory(mapped.address, end, number, self._node))
        view: memoryview = mapped.view
        return view

    def _together(self, act: Callable[[], tuple[Any, object]]) -> tuple[Any, list[Any]]:
        """Run `act` on all ranks; if it fails on some, raise the same error on all."""

        def tell(told: tuple[str, object]) -> list[Any]:
            limit_s = self._config.timeout
            return exchange(self._private, told, limit_s, meanwhile=self._serve)

        outcome = act_on_all(act, tell)
        if outcome.failures:
            rank, why = min(outcome.failures.items())
            raise TransportError(
                f"cannot make an array that ranks share: rank {rank}: {why}",
                ranks=(rank,),
            )
        return outcome.kept, outcome.facts

    def _introduce(self, what: str) -> dict[str, object]:
        """Return this rank's fact; if it is the first of several, let them meet."""
        secret = secrets.token_hex(16)
        if len(self._members) > 1 and self._rank == self._members[0]:
            self._door = passing.Door(secret, len(self._members))
        return {
            "what": what,
            "secret": secret,
            "number": secrets.randbits(_NUMBER_BITS),
        }

    def _map(self, nbytes: int, secret: str) -> engine.Mapped:
        """Return the memory, as this process has mapped it."""
        if self._rank == self._members[0]:
            try:
                self._fd = segment.create(nbytes, f"{nbytes} bytes")
                mapped = engine.map_file(self._fd, nbytes, shared_memory.remove)
            except TransportError:
                self._close()  # lest the others wait at the door
                raise
            self._expected = dict(
                passing.proofs(secret, guest, 0) for guest in self._members[1:]
            )
            self._serve()
            return mapped
        shown = passing.proofs(secret, self._rank, 0)
        self._fd = passing.fetch(secret, shown, _FETCH_SHARE * self._config.timeout)
        segment.check(self._fd, nbytes)
        return engine.map_file(self._fd, nbytes, shared_memory.remove)

    def _serve(self) -> None:
        """Pass the descriptor to ranks of this node that have come for it."""
        self._meanwhile()
        if self._door is not None and self._expected:
            self._door.serve(self._fd, self._expected)

    def _close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
