# SPDX-License-Identifier: BSD-3-Clause
"""Private communicators, on which ranks share blocks and learn who is missing."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._mpi import roll
from mpimcast._mpi.absence import Absence
from mpimcast._mpi.completion import complete
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A communicator that some rank does not free within this time is never freed.
_DRAIN_S = 10.0

# Topics of the roll: the numbered calls of `share`, the numbered entries into a
# communicator of the same processes, and the numbered waits elsewhere in the library.
_SHARE, _ENTRY, _WAIT = "share", "entry", "wait"
_entries: Counter[str] = Counter()
_departing = False


def enter(key: str) -> str:
    """Record, to be told on the roll, that this process has entered once more.

    Parameters
    ----------
    key
        Names the communicator's processes.

    Returns
    -------
    str
        The topic under which the roll tells who has entered.
    """
    _entries[key] += 1
    return f"{_ENTRY} {key} {_entries[key]}"


def depart() -> None:
    """Record, to be told on the roll, that this process opens no more communicators."""
    global _departing  # noqa: PLW0603 -- there is one in a process
    _departing = True


class Private(MPI.Intracomm):
    """A private duplicate of a communicator, which counts what it costs this rank.

    Attributes
    ----------
    nmessages, nbytes : int
        Messages and bytes that `share` has sent. It receives as many messages, and as
        many bytes where all blocks have one size.
    warn_after : float
        The setting WARN_AFTER.
    doing : str
        The operation that this rank is in, as told to ranks that wait for it here.
    leaving : bool
        Whether this rank will take part in no further `share`.
    """

    nmessages = 0
    nbytes = 0
    warn_after = math.inf
    doing = ""
    leaving = False
    _nshares = 0
    _nwaits = 0

    @cached_property
    def roll(self) -> roll.Roll:
        """The roll of this communicator's ranks."""
        return roll.Roll(self, self._answer)

    def attend(self) -> None:
        """Answer the roll from now on even while this rank waits elsewhere."""
        roll.add(self.roll)

    def _answer(self, topic: str) -> str | None:
        """Return this rank's answer to a topic: HERE, LEFT, or what it is doing."""
        kind, *words = topic.split()
        if kind == _SHARE:
            come, leaving = int(words[0]) <= self._nshares, self.leaving
        elif kind == _ENTRY:
            come, leaving = int(words[1]) <= _entries[words[0]], _departing
        elif kind == _WAIT:
            come, leaving = int(words[0]) <= self._nwaits, self.leaving
        else:
            return None
        if come:
            return roll.HERE
        return roll.LEFT if leaving else self.doing or None

    def Free(self) -> None:  # noqa: N802 -- mpi4py's name
        """Free the communicator once no message is under way. Collective."""
        roll.remove(self.roll)
        if self.roll.drain(_DRAIN_S):
            super().Free()

    def absence(self, what: str) -> Absence:
        """Return what finds out who is missing in a collective of the MPI library.

        All ranks call this in the same order, each before it begins to wait.

        Parameters
        ----------
        what
            The collective, as messages word it.
        """
        self._nwaits += 1
        return Absence(
            what,
            math.inf,
            self.warn_after,
            roll=self.roll,
            topic=f"{_WAIT} {self._nwaits}",
            members=range(self.Get_size()),
        )

    def share(
        self,
        block: bytes,
        sizes: Sequence[int],
        limit_s: float,
        what: str,
        *,
        is_futile: Callable[[], bool] = lambda: False,
    ) -> list[bytes]:
        """Give every rank's block to all ranks, which know all blocks' sizes.

        Bruck's algorithm sends one message in each of ceil(log2 P) rounds, while an
        Iallgather may send one to every other rank, as Open MPI's does.
        """
        self._nshares += 1
        absence = Absence(
            what,
            limit_s,
            self.warn_after,
            roll=self.roll,
            topic=f"{_SHARE} {self._nshares}",
            members=range(self.Get_size()),
        )

        def wait(request: MPI.Request, buffers: object) -> None:
            complete(
                request,
                limit_s,
                what,
                buffers=buffers,
                is_futile=is_futile,
                absence=absence,
            )

        try:
            return self._share(block, sizes, wait)
        except Error:
            raise
        except BaseException:
            absence.leave()
            raise

    def spread(self, memory: Any, limit_s: float, what: str) -> None:
        """Give the bytes of rank 0's `memory` to all ranks, in their own `memory`."""
        request = self.Ibcast([memory, MPI.BYTE], 0)
        complete(request, limit_s, what, buffers=memory)

    def _share(
        self,
        block: bytes,
        sizes: Sequence[int],
        wait: Callable[[MPI.Request, object], None],
    ) -> list[bytes]:
        rank, size = self.Get_rank(), self.Get_size()
        blocks = [block]  # from this rank's on, in rank order
        while (have := len(blocks)) < size:
            lacking = range(rank + have, rank + min(2 * have, size))
            lengths = [sizes[each % size] for each in lacking]
            place = bytearray(sum(lengths))
            sent = b"".join(blocks[: len(lacking)])
            requests = (
                self.Irecv([place, MPI.BYTE], (rank + have) % size, tag=0),
                self.Isend([sent, MPI.BYTE], (rank - have) % size),
            )
            for request in requests:
                wait(request, (place, sent))
            blocks += _split(place, lengths)
            self.nmessages += 1
            self.nbytes += len(sent)
        first = size - rank
        return blocks[first:] + blocks[:first]


def _split(whole: bytearray, lengths: Sequence[int]) -> list[bytes]:
    ends = accumulate(lengths)
    return [bytes(whole[end - n : end]) for end, n in zip(ends, lengths, strict=True)]
