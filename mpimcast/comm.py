# SPDX-License-Identifier: BSD-3-Clause
"""A communicator whose collectives go through multicast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast import failure, objects
from mpimcast.errors import Error
from mpimcast.handle import Handle
from mpimcast.operation import Allgather, Allgatherv, Bcast

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace

    from mpimcast.binding import Binding
    from mpimcast.operation import Operation


class Intracomm(Handle):
    """Another handle of an intracommunicator, whose collectives are multicast.

    These are ``Bcast``, ``Allgather``, ``Allgatherv``, ``bcast`` and ``allgather``.
    Everything else is the MPI library's. Handles of one communicator share one
    state; communicators derived from it are of this class and inherit its settings,
    except those with a topology.

    As in mpi4py, handles of ``MPI.COMM_WORLD`` and ``MPI.COMM_SELF`` can be pickled.
    Keywords go along, except those that may differ between ranks (``net_devices``,
    ``progress``, ``log``). Where the communicator has other settings already, those
    stay.

    Parameters
    ----------
    comm
        The communicator. Constructing is local; the first of these that all
        ranks call opens what is needed.
    **settings
        The variables ``MPIMCAST_...`` in lower case, over which they win:
        ``transport="udp"``, ``min_bytes=0``... ``python -m mpimcast info`` lists all.

    Raises
    ------
    ConfigError
        For a bad value, or one that conflicts with an earlier handle's.

    Examples
    --------
    Those of the methods go on from here.

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
            This rank's block, in any form that mpi4py takes; None or MPI.IN_PLACE if
            it already lies in its place in `recvbuf`.
        recvbuf
            The place for all ranks' blocks. Must not overlap `sendbuf`.

        Raises
        ------
        Error
            If it failed; `recvbuf` is then undefined. On return, in any case, both
            buffers are the caller's again.

        Examples
        --------
        >>> block, blocks = np.full(3, comm.rank), np.zeros((comm.size, 3), int)
        >>> comm.Allgather(block, blocks)
        >>> comm.Allgather(MPI.IN_PLACE, blocks)
        >>> blocks[-1].tolist() == [comm.size - 1] * 3
        True
        """
        binding = self._binding or self._bind()
        if binding.bypass or not self._runs(
            binding, recvbuf, binding.small_bytes, Allgather, sendbuf, recvbuf
        ):
            MPI.Intracomm.Allgather(self, sendbuf, recvbuf)

    def Allgatherv(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV
    ) -> None:
        """Gather every rank's block, each of its own size, to all ranks.

        Parameters
        ----------
        sendbuf
            This rank's block, in any form that mpi4py takes; None or MPI.IN_PLACE if
            it already lies in its place in `recvbuf`.
        recvbuf
            The place for all ranks' blocks: a buffer, or with the counts of all
            ranks' items, and maybe displacements. What lies between the blocks stays
            as it is.

        Raises
        ------
        Error
            If it failed; `recvbuf` is then undefined. On return, in any case, both
            buffers are the caller's again.

        Examples
        --------
        >>> counts = [rank + 1 for rank in range(comm.size)]
        >>> blocks = np.zeros(sum(counts), int)
        >>> comm.Allgatherv(np.full(comm.rank + 1, comm.rank), [blocks, counts])
        >>> int(blocks[-1]) == comm.size - 1
        True
        """
        binding = self._binding or self._bind()
        if binding.bypass or not self._runs(
            binding, recvbuf, binding.small_bytes, Allgatherv, sendbuf, recvbuf
        ):
            MPI.Intracomm.Allgatherv(self, sendbuf, recvbuf)

    def Bcast(self, buf: BufSpec, root: int = 0) -> None:  # noqa: N802 -- mpi4py's name
        """Send the root's data to all ranks.

        Parameters
        ----------
        buf
            The data on the root, its place on the others, in any form that mpi4py
            takes.
        root
            The same on all ranks.

        Raises
        ------
        Error
            If it failed; what others than the root have in `buf` is then undefined.
            On return, in any case, it is the caller's again.

        Examples
        --------
        >>> data = np.arange(3) if comm.rank == 0 else np.zeros(3, int)
        >>> comm.Bcast(data, root=0)
        >>> data.tolist()
        [0, 1, 2]
        """
        binding = self._binding or self._bind()
        if binding.bypass or not self._runs(
            binding, buf, binding.small_block_bytes, Bcast, buf, root
        ):
            MPI.Intracomm.Bcast(self, buf, root)

    def _runs(
        self,
        binding: Binding,
        whole: Any,
        small_bytes: int,
        kind: Callable[..., Operation],
        *arguments: Any,
    ) -> bool:
        """Do an operation unless it is the MPI library's; return whether it was ours.

        If `whole` is an array below `small_bytes` no more need be known. The user's
        mistakes are found before any communication, as mpi4py does: the other ranks
        wait, as for a rank that is late.
        """
        try:
            if whole.nbytes < small_bytes:
                return False
        except (AttributeError, TypeError):
            pass
        operation = self._make(kind, *arguments)
        carrier = binding.carrier(operation.nbytes)
        if carrier is not None:
            carrier.run(operation)
        return carrier is not None

    def _make(self, kind: Callable[..., Operation], *arguments: Any) -> Operation:
        """Judge the user's arguments, by the communicator's error handler too."""
        try:
            return kind(self, *arguments)
        except (Error, MPI.Exception) as error:
            failure.call_errhandler(self, error)
            raise

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Send the root's object to all ranks.

        Parameters
        ----------
        obj
            The object, if this is the root.
        root
            The same on all ranks.

        Returns
        -------
        Any
            A copy of it, on the root too.

        Raises
        ------
        Error
            If it failed, also because it cannot be pickled, which raises on the root
            what pickle does.

        Examples
        --------
        >>> comm.bcast({"step": 7} if comm.rank == 0 else None)
        {'step': 7}
        """
        binding = self._binding or self._bind()
        if binding.bypass:
            return MPI.Intracomm.bcast(self, obj, root)
        return objects.bcast(self, obj, root)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Gather every rank's object to all ranks.

        Parameters
        ----------
        sendobj
            This rank's object.

        Returns
        -------
        list
            Copies of all of them, in rank order.

        Raises
        ------
        Error
            If it failed, also because one cannot be pickled, which raises on its
            rank what pickle does.

        Examples
        --------
        >>> comm.allgather(comm.rank) == list(range(comm.size))
        True
        """
        binding = self._binding or self._bind()
        if binding.bypass:
            return MPI.Intracomm.allgather(self, sendobj)
        return objects.allgather(self, binding, sendobj)

    # ---- collectives that nobody waits in ------------------------------------

    def Ibcast(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, root: int = 0
    ) -> MPI.Request:
        """Start what ``Bcast`` does, and return at once, as ``Iallgather``.

        Examples
        --------
        >>> data = np.full(3, comm.rank)
        >>> request = comm.Ibcast(data, root=0)
        >>> request.Wait()
        True
        >>> data.tolist()
        [0, 0, 0]
        """
        ours = self._start(Bcast, buf, root)
        return MPI.Intracomm.Ibcast(self, buf, root) if ours is None else ours

    def Iallgather(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB
    ) -> MPI.Request:
        """Start what ``Allgather`` does, and return at once.

        Before the first blocking collective has opened what is needed, the MPI
        library does it.

        Examples
        --------
        >>> block, blocks = np.full(3, comm.rank), np.zeros((comm.size, 3), int)
        >>> requests = [comm.Iallgather(block, blocks), comm.Ibcast(np.zeros(9))]
        >>> MPI.Request.Waitall(requests)
        True
        >>> int(blocks[-1, 0]) == comm.size - 1
        True
        """
        ours = self._start(Allgather, sendbuf, recvbuf)
        if ours is None:
            return MPI.Intracomm.Iallgather(self, sendbuf, recvbuf)
        return ours

    def Iallgatherv(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV
    ) -> MPI.Request:
        """Start what ``Allgatherv`` does, and return at once, as ``Iallgather``.

        Examples
        --------
        >>> counts = [1] * comm.size
        >>> blocks = np.zeros(comm.size, int)
        >>> request = comm.Iallgatherv(np.full(1, comm.rank), [blocks, counts])
        >>> while not request.Test():
        ...     pass  # compute
        >>> blocks.tolist() == list(range(comm.size))
        True
        """
        ours = self._start(Allgatherv, sendbuf, recvbuf)
        if ours is None:
            return MPI.Intracomm.Iallgatherv(self, sendbuf, recvbuf)
        return ours

    def Bcast_init(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, root: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> MPI.Prequest:
        """Make a request that does what ``Bcast`` does at each ``Start``.

        Examples
        --------
        >>> data = np.zeros(3, int)
        >>> request = comm.Bcast_init(data)
        >>> for step in range(2):
        ...     if comm.rank == 0:
        ...         data.fill(step)
        ...     request.Start()
        ...     finished = request.Wait()
        >>> request.Free()
        >>> data.tolist()
        [1, 1, 1]
        """
        ours = self._prepare(Bcast, buf, root)
        return MPI.Intracomm.Bcast_init(self, buf, root, info) if ours is None else ours

    def Allgather_init(  # noqa: N802 -- mpi4py's name
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> MPI.Prequest:
        """Make a request that does what ``Allgather`` does at each ``Start``.

        Examples
        --------
        >>> block, blocks = np.full(3, comm.rank), np.zeros((comm.size, 3), int)
        >>> request = comm.Allgather_init(block, blocks)
        >>> request.Start()
        >>> request.Wait()
        True
        >>> request.Free()
        """
        ours = self._prepare(Allgather, sendbuf, recvbuf)
        if ours is None:
            return MPI.Intracomm.Allgather_init(self, sendbuf, recvbuf, info)
        return ours

    def Allgatherv_init(  # noqa: N802 -- mpi4py's name
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> MPI.Prequest:
        """Make a request that does what ``Allgatherv`` does at each ``Start``.

        Examples
        --------
        >>> counts = [1] * comm.size
        >>> blocks = np.zeros(comm.size, int)
        >>> request = comm.Allgatherv_init(np.full(1, comm.rank), [blocks, counts])
        >>> mpimcast.Startall([request])
        >>> request.Wait()
        True
        >>> request.Free()
        """
        ours = self._prepare(Allgatherv, sendbuf, recvbuf)
        if ours is None:
            return MPI.Intracomm.Allgatherv_init(self, sendbuf, recvbuf, info)
        return ours

    def _start(
        self, kind: Callable[..., Operation], *arguments: Any
    ) -> MPI.Request | None:
        """Start a collective unless it is the MPI library's."""
        binding = self._binding or self._bind()
        if binding.bypass:
            return None
        operation = self._make(kind, *arguments)
        carrier = binding.open_carrier(operation.nbytes)
        return carrier.start(operation) if carrier is not None else None

    def _prepare(
        self, kind: Callable[..., Operation], *arguments: Any
    ) -> MPI.Prequest | None:
        """Make a persistent request unless it is the MPI library's. Collective."""
        binding = self._binding or self._bind()
        if binding.bypass:
            return None
        operation = self._make(kind, *arguments)
        carrier = binding.carrier(operation.nbytes)
        if carrier is not None and binding.threaded:
            return carrier.prepare(operation)
        return None
