# SPDX-License-Identifier: BSD-3-Clause
"""The entry of all ranks into a communicator, which is ready once all are there."""

from __future__ import annotations

import contextlib
import hashlib
import math
from array import array
from typing import TYPE_CHECKING

from mpi4py import MPI

from mpimcast._mpi import roll
from mpimcast._mpi.absence import Absence
from mpimcast._mpi.completion import abandon, complete
from mpimcast._mpi.private import Private, enter
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from mpimcast._settings.config import Config


class Entry:
    """A private duplicate in the making, which is ready once all ranks have entered."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._group = comm.Get_group()
        self._key = _key_of(self._group)
        self._topic = enter(self._key)
        self._private, self._request = MPI.Intracomm.Idup(comm)

    def join(self) -> Private:
        """Return the duplicate on a rank that ends and will not use it."""
        complete(self._request, math.inf, "ending")
        return self._made()

    def wait(self, config: Config) -> Private:
        """Return the duplicate once all ranks have entered."""
        what = "opening a communicator"
        limit_s = config.entry_timeout
        absence = self._absence(what, limit_s, config.warn_after)
        complete(self._request, limit_s, what, absence=absence)
        private = self._made()
        private.warn_after = config.warn_after
        return private

    def _made(self) -> Private:
        self._group.Free()
        private = Private(self._private)
        private.attend()
        return private

    def _absence(self, what: str, limit_s: float, warn_after_s: float) -> Absence:
        """Return a wait that finds missing ranks over a communicator already open."""
        whole = roll.covering(self._group) if self._key else None
        return Absence(
            what,
            limit_s,
            warn_after_s,
            roll=whole,
            topic=self._topic,
            members=whole.numbers(self._group) if whole is not None else (),
        )

    def give_up(self, config: Config) -> None:
        """Wait a while for late ranks, and keep the memory that MPI may still use."""
        abandon(self)
        with contextlib.suppress(TimedOut):
            complete(self._request, config.timeout, "closing a communicator")


def _key_of(group: MPI.Group) -> str:
    """Return a key that is equal on all ranks of a group.

    Return "" if one of them is not in COMM_WORLD.
    """
    world = MPI.COMM_WORLD.Get_group()
    ranks = group.Translate_ranks(None, world)
    world.Free()
    if MPI.UNDEFINED in ranks:
        return ""
    return hashlib.sha256(array("q", ranks).tobytes()).hexdigest()[:16]
