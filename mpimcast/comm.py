# SPDX-License-Identifier: BSD-3-Clause
"""Communicators whose collectives go through multicast."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._session import hosted, targets
from mpimcast._session.collectives import Allgather, Allgatherv, Bcast
from mpimcast._session.nonblocking import Nonblocking

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace

    from mpimcast._session.collectives import Collective
    from mpimcast._session.state import CommunicatorState

# The MPI library's own methods, found once: looking them up would cost small calls more
# than all else that is done for them here.
_ALLGATHER = MPI.Intracomm.Allgather
_ALLGATHERV = MPI.Intracomm.Allgatherv
_BCAST = MPI.Intracomm.Bcast
_ALLGATHER_OBJECT = MPI.Intracomm.allgather
_BCAST_OBJECT = MPI.Intracomm.bcast


class Intracomm(Nonblocking):
    """A handle of an intracommunicator whose collectives are multicast.

    ``Bcast``, ``Allgather`` and ``Allgatherv``, their non-blocking and persistent
    forms, and ``bcast`` and ``allgather`` of Python objects go through multicast.
    Everything else is the MPI library's. All handles of one communicator share one
    state. Communicators derived from it are of this class and inherit its settings,
    except those with a topology.

    Handles of ``MPI.COMM_WORLD`` and ``MPI.COMM_SELF`` can be pickled, as in mpi4py.
    The settings given as keywords are also pickled, except those that may differ
    between ranks (``net_devices``, ``progress``, ``proxy``, ``warn_after``, ``log``). A
    process that already has other settings for the communicator keeps them when it
    unpickles the handle.

    Parameters
    ----------
    comm
        The communicator. Constructing the handle is local. The first collective of
        this class that all ranks call opens the transport.
    **settings
        Settings by their names in lower case, such as ``transport="udp"``. A keyword
        overrides the environment variable ``MPIMCAST_...`` of that name.

    Raises
    ------
    ConfigError
        If a value is not valid, a keyword is no setting, or a value conflicts with
        one that an earlier handle of this communicator was given.

    Examples
    --------
    The examples of the methods continue this one.

    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> block, blocks = np.full(1000, comm.rank), np.zeros((comm.size, 1000), int)
    >>> comm.Allgather(block, blocks)
    >>> blocks[:, 0].tolist() == list(range(comm.size))
    True
    """

    # ---- collectives ---------------------------------------------------------

    def Allgather(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB
    ) -> None:
        """Gather every rank's block to all ranks, in rank order.

        Parameters
        ----------
        sendbuf
            This rank's block, in any form that mpi4py takes. ``MPI.IN_PLACE``, or
            None, says that the block already lies in its place in `recvbuf`; all
            ranks must say so, or none.
        recvbuf
            Where the blocks of all ranks go. It must not overlap `sendbuf`.

        Raises
        ------
        Error
            If the operation failed. The content of `recvbuf` is then undefined.
        MPI.Exception
            If an argument is not valid, as in mpi4py.
        BufferError
            If a buffer is memory of a device that mpimcast cannot have copied.

        Notes
        -----
        MPI-4.1, section 6.7. Both buffers belong to the library during the call, and
        to the caller again when it returns or raises.

        Examples
        --------
        >>> block, blocks = np.full(3, comm.rank), np.zeros((comm.size, 3), int)
        >>> comm.Allgather(block, blocks)
        >>> comm.Allgather(MPI.IN_PLACE, blocks)
        >>> blocks[-1].tolist() == [comm.size - 1] * 3
        True
        """
        if not self._express.allgather(self, sendbuf, recvbuf):
            self._carry(Allgather, _ALLGATHER, sendbuf, recvbuf)

    def Allgatherv(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV
    ) -> None:
        """Gather every rank's block, each of its own size, to all ranks.

        Parameters
        ----------
        sendbuf
            This rank's block, in any form that mpi4py takes. ``MPI.IN_PLACE``, or
            None, says that the block already lies in its place in `recvbuf`; all
            ranks must say so, or none.
        recvbuf
            Where the blocks of all ranks go: a buffer, or a list of a buffer, the
            counts of all ranks and, if wanted, their displacements and a datatype.
            Memory between the blocks is not changed.

        Raises
        ------
        Error
            If the operation failed. The content of `recvbuf` is then undefined.
        MPI.Exception
            If an argument is not valid, as in mpi4py.
        BufferError
            If a buffer is memory of a device that mpimcast cannot have copied.

        Notes
        -----
        MPI-4.1, section 6.7. Both buffers belong to the library during the call, and
        to the caller again when it returns or raises.

        Examples
        --------
        >>> counts = [rank + 1 for rank in range(comm.size)]
        >>> blocks = np.zeros(sum(counts), int)
        >>> comm.Allgatherv(np.full(comm.rank + 1, comm.rank), [blocks, counts])
        >>> int(blocks[-1]) == comm.size - 1
        True
        """
        if self._limits.small_vector(recvbuf):
            _ALLGATHERV(self, sendbuf, recvbuf)
        else:
            self._carry(Allgatherv, _ALLGATHERV, sendbuf, recvbuf)

    def Bcast(self, buf: BufSpec, root: int = 0) -> None:  # noqa: N802 -- mpi4py's name
        """Send the root's data to all ranks.

        Parameters
        ----------
        buf
            The data on the root, the place for it on other ranks, in any form that
            mpi4py takes.
        root
            The root's rank, the same on all ranks.

        Raises
        ------
        Error
            If the operation failed. The content of `buf` is then undefined, except on
            the root.
        MPI.Exception
            If an argument is not valid, as in mpi4py.
        BufferError
            If `buf` is memory of a device that mpimcast cannot have copied.

        Notes
        -----
        MPI-4.1, section 6.4. The buffer belongs to the library during the call, and to
        the caller again when it returns or raises.

        Examples
        --------
        >>> data = np.arange(3) if comm.rank == 0 else np.zeros(3, int)
        >>> comm.Bcast(data, root=0)
        >>> data.tolist()
        [0, 1, 2]
        """
        if not self._express.bcast(self, buf, root):
            self._carry(Bcast, _BCAST, buf, root)

    def node_barrier(self) -> None:
        """Wait until all ranks of this rank's node have called this method.

        After that each of them may write to arrays that they share, see
        `mpimcast.empty`. Where ranks share no memory, return at once.

        Raises
        ------
        Error
            If it failed, for example because a rank has ended.

        Notes
        -----
        It is a collective of the node's ranks, which call it in the same order as the
        communicator's other collectives. If it is the first of them, it opens the
        communicator, in which all of its ranks take part.

        Examples
        --------
        >>> weights = mpimcast.empty(1000, "f4", comm=comm)
        >>> for step in range(3):
        ...     if comm.rank == 0:
        ...         weights.fill(step)
        ...     comm.Bcast(weights)
        ...     assert weights[-1] == step
        ...     comm.node_barrier()  # all have read them: rank 0 may write again
        """
        state = self._comm_state or self._need_state()
        if not state.bypass:
            carrier = state.carrier(targets.EVERY_BYTES)
            if carrier is not None:
                carrier.streams.node_barrier()

    def _carry(
        self,
        kind: Callable[..., Collective],
        library: Callable[..., None],
        *arguments: Any,
    ) -> None:
        """Run a blocking collective on the better way, and count it.

        As in mpi4py, arguments are checked before any communication: a rank that passes
        wrong ones raises an exception, and the other ranks wait for it as for a late
        rank.
        """
        state = self._comm_state or self._need_state()
        begin_ns = time.monotonic_ns()
        ours = self._carry_ours(state, kind, library, *arguments)
        if ours is False:
            hosted.run(library, self, *arguments)
        if ours is not None:
            state.thresholds.tally.count(kind, arguments, ours=ours, begin_ns=begin_ns)

    def _carry_ours(
        self,
        state: CommunicatorState,
        kind: Callable[..., Collective],
        library: Callable[..., None],
        *arguments: Any,
    ) -> bool | None:
        """Run a collective unless `library` has to; return whether mpimcast carried it.

        Return None if it was a trial, of either way.
        """
        if state.bypass and not targets.holds(*arguments):
            return False
        collective = self._make(kind, *arguments)
        carrier = targets.carrier(self, state, collective)
        if carrier is None:
            return False
        return carrier.run(
            collective, arguments, lambda: hosted.run(library, self, *arguments)
        )

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Send the root's object to all ranks.

        The object is pickled; its large buffers, such as those of NumPy arrays, are
        sent beside the pickle.

        Parameters
        ----------
        obj
            The object on the root; not used on other ranks.
        root
            The root's rank, the same on all ranks.

        Returns
        -------
        Any
            A copy of the object, even on the root.

        Raises
        ------
        Error
            If the operation failed, or if the object cannot be pickled. In the latter
            case the root raises what pickle raised.

        Examples
        --------
        >>> comm.bcast({"step": 7} if comm.rank == 0 else None)
        {'step': 7}
        """
        state = self._comm_state or self._need_state()
        if state.bypass:
            return _BCAST_OBJECT(self, obj, root)
        return state.objects.bcast(self, obj, root, state.thresholds.agreed_bytes)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather every rank's object to all ranks.

        The objects are pickled; their large buffers, such as those of NumPy arrays,
        are sent beside the pickles.

        Parameters
        ----------
        sendobj
            This rank's object.

        Returns
        -------
        list
            Copies of all objects, in rank order.

        Raises
        ------
        Error
            If the operation failed, or if an object cannot be pickled. In the latter
            case the rank that has the object raises what pickle raised.

        Examples
        --------
        >>> comm.allgather(comm.rank) == list(range(comm.size))
        True
        """
        state = self._comm_state or self._need_state()
        if state.bypass:
            return _ALLGATHER_OBJECT(self, sendobj)
        return state.objects.allgather(self, sendobj, state.thresholds.agreed_bytes)

    # ---- intercommunicators --------------------------------------------------

    def Create_intercomm(  # noqa: N802
        self,
        local_leader: int,
        peer_comm: MPI.Intracomm,
        remote_leader: int,
        tag: int = 0,
    ) -> Intercomm:
        """Connect this communicator to another group by an intercommunicator.

        The ``Merge`` of that intercommunicator returns an `Intracomm` of mpimcast.

        Examples
        --------
        >>> if comm.size > 1:
        ...     half = comm.Split(color=comm.rank % 2)
        ...     between = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
        ...     whole = between.Merge()
        ...     assert type(whole) is type(comm)
        ...     for each in (half, between, whole):
        ...         each.Free()
        """
        return Intercomm(
            super().Create_intercomm(local_leader, peer_comm, remote_leader, tag)
        )


class Intercomm(MPI.Intercomm):
    """An intercommunicator made by ``Create_intercomm``, for its ``Merge``.

    Its own collectives are the MPI library's.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> if comm.size > 1:
    ...     half = comm.Split(color=comm.rank % 2)
    ...     between = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
    ...     whole = between.Merge()
    ...     for each in (half, between, whole):
    ...         each.Free()
    """

    def Merge(self, high: bool = False) -> Intracomm:  # noqa: FBT001, FBT002, N802
        """Join both groups in an intracommunicator, and return an `Intracomm`.

        Its settings come from environment variables alone, since the two groups may
        have had different ones.

        Parameters
        ----------
        high
            Whether the ranks of this group follow those of the other.
        """
        return Intracomm(super().Merge(high))
