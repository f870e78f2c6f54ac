# SPDX-License-Identifier: BSD-3-Clause
"""The collectives of a communicator that return a request at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._mpi import error_codes
from mpimcast._session import hosted, targets
from mpimcast._session.collectives import Allgather, Allgatherv, Bcast
from mpimcast._session.handle import Handle
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace

    from mpimcast._session.collectives import Collective
    from mpimcast.requests import (
        HostedPrequest,
        HostedRequest,
        Prequest,
        Request,
    )

# The MPI library's own methods, found once.
_IBCAST = MPI.Intracomm.Ibcast
_IALLGATHER = MPI.Intracomm.Iallgather
_IALLGATHERV = MPI.Intracomm.Iallgatherv
_BCAST_INIT = MPI.Intracomm.Bcast_init
_ALLGATHER_INIT = MPI.Intracomm.Allgather_init
_ALLGATHERV_INIT = MPI.Intracomm.Allgatherv_init


class Nonblocking(Handle):
    """A communicator with non-blocking and persistent collectives."""

    # ---- non-blocking --------------------------------------------------------

    def Ibcast(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, root: int = 0
    ) -> Request | HostedRequest:
        """Start a ``Bcast``; return a request at once.

        Parameters
        ----------
        buf, root
            As for ``Bcast``.

        Returns
        -------
        Request or HostedRequest
            The latter is the MPI library's, if the library carries the operation.
            It does so where it would carry ``Bcast``, until a blocking
            collective or a ``..._init`` has opened the transport, and where some rank
            has less than ``MPI.THREAD_MULTIPLE``.

        Raises
        ------
        Error
            If an earlier operation of this communicator failed. If this one fails, the
            request's ``Wait`` or ``Test`` raises it.
        MPI.Exception
            If an argument is not valid, as in mpi4py.
        BufferError
            If a buffer is memory of a device that mpimcast cannot have copied.

        Notes
        -----
        MPI-4.1, section 6.12. Until the request is complete the program must not write
        to `buf`, and except on the root must not read it. The request keeps the buffer
        alive.

        Examples
        --------
        >>> data = np.full(3, comm.rank)
        >>> request = comm.Ibcast(data, root=0)
        >>> request.Wait()
        True
        >>> data.tolist()
        [0, 0, 0]
        """
        if self._request_limits.small_block(buf):
            return hosted.start(_IBCAST, self, Bcast, buf, root)
        return self._start(_IBCAST, Bcast, buf, root)

    def Iallgather(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB
    ) -> Request | HostedRequest:
        """Start an ``Allgather``; return a request at once.

        Parameters
        ----------
        sendbuf, recvbuf
            As for ``Allgather``.

        Returns
        -------
        Request or HostedRequest
            The latter is the MPI library's, if the library carries the operation.
            It does so where it would carry ``Allgather``, until a blocking
            collective or a ``..._init`` has opened the transport, and where some rank
            has less than ``MPI.THREAD_MULTIPLE``.

        Raises
        ------
        Error
            If an earlier operation of this communicator failed. If this one fails, the
            request's ``Wait`` or ``Test`` raises it.
        MPI.Exception
            If an argument is not valid, as in mpi4py.
        BufferError
            If a buffer is memory of a device that mpimcast cannot have copied.

        Notes
        -----
        MPI-4.1, section 6.12. Until the request is complete the program must not write
        to `sendbuf`, nor read or write `recvbuf`, except to read what the request says
        has landed (`Request.blocks`). It keeps both buffers alive.

        Examples
        --------
        >>> block, blocks = np.full(3, comm.rank), np.zeros((comm.size, 3), int)
        >>> requests = [comm.Iallgather(block, blocks), comm.Ibcast(np.zeros(9))]
        >>> MPI.Request.Waitall(requests)
        True
        >>> int(blocks[-1, 0]) == comm.size - 1
        True
        """
        if self._request_limits.small_blocks(recvbuf):
            return hosted.start(_IALLGATHER, self, Allgather, sendbuf, recvbuf)
        return self._start(_IALLGATHER, Allgather, sendbuf, recvbuf)

    def Iallgatherv(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV
    ) -> Request | HostedRequest:
        """Start an ``Allgatherv``; return a request at once.

        Parameters
        ----------
        sendbuf, recvbuf
            As for ``Allgatherv``.

        Returns
        -------
        Request or HostedRequest
            The latter is the MPI library's, if the library carries the operation.
            It does so where it would carry ``Allgatherv``, until a blocking
            collective or a ``..._init`` has opened the transport, and where some rank
            has less than ``MPI.THREAD_MULTIPLE``.

        Raises
        ------
        Error
            If an earlier operation of this communicator failed. If this one fails, the
            request's ``Wait`` or ``Test`` raises it.
        MPI.Exception
            If an argument is not valid, as in mpi4py.
        BufferError
            If a buffer is memory of a device that mpimcast cannot have copied.

        Notes
        -----
        MPI-4.1, section 6.12. Until the request is complete the program must not write
        to `sendbuf`, nor read or write `recvbuf`, except to read what the request says
        has landed (`Request.blocks`). It keeps both buffers alive.

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
        if self._request_limits.small_vector(recvbuf):
            return hosted.start(_IALLGATHERV, self, Allgatherv, sendbuf, recvbuf)
        return self._start(_IALLGATHERV, Allgatherv, sendbuf, recvbuf)

    # ---- persistent ----------------------------------------------------------

    def Bcast_init(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, root: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> Prequest | HostedPrequest:
        """Make a persistent request for a ``Bcast`` of these buffers.

        Parameters
        ----------
        buf, root
            As for ``Bcast``.
        info
            Hints for the MPI library, if it carries the operation.

        Returns
        -------
        Prequest or HostedPrequest
            Inactive. The latter is the MPI library's, if the library carries the
            operation. It does so where it would carry ``Bcast``, and where some
            rank has less than ``MPI.THREAD_MULTIPLE``.

        Raises
        ------
        Error
            If the transport cannot be opened, or an earlier operation of this
            communicator failed. ``Wait`` and ``Test`` raise it if this one fails.
        MPI.Exception, BufferError
            As ``Bcast`` does.

        Notes
        -----
        MPI-4.1, section 6.13. This call is collective; it opens the transport if none
        is open. ``Start`` is local, and ranks may start their requests in different
        orders. While the request is active the program must not write to `buf`, and
        except on the root must not read it; the request keeps it alive until freed.

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
        if self._limits.small_block(buf):
            return hosted.prepare(_BCAST_INIT, info, self, Bcast, buf, root)
        return self._prepare(_BCAST_INIT, info, Bcast, buf, root)

    def Allgather_init(  # noqa: N802 -- mpi4py's name
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Prequest | HostedPrequest:
        """Make a persistent request for an ``Allgather`` of these buffers.

        Parameters
        ----------
        sendbuf, recvbuf
            As for ``Allgather``.
        info
            Hints for the MPI library, if it carries the operation.

        Returns
        -------
        Prequest or HostedPrequest
            Inactive. The latter is the MPI library's, if the library carries the
            operation. It does so where it would carry ``Allgather``, and where
            some rank has less than ``MPI.THREAD_MULTIPLE``.

        Raises
        ------
        Error
            If the transport cannot be opened, or an earlier operation of this
            communicator failed. ``Wait`` and ``Test`` raise it if this one fails.
        MPI.Exception, BufferError
            As ``Allgather`` does.

        Notes
        -----
        MPI-4.1, section 6.13. This call is collective; it opens the transport if none
        is open. ``Start`` is local, and ranks may start their requests in different
        orders. Until it is complete, buffers are as for the non-blocking form.

        Examples
        --------
        >>> block, blocks = np.full(3, comm.rank), np.zeros((comm.size, 3), int)
        >>> request = comm.Allgather_init(block, blocks)
        >>> request.Start()
        >>> request.Wait()
        True
        >>> request.Free()
        """
        if self._limits.small_blocks(recvbuf):
            return hosted.prepare(
                _ALLGATHER_INIT, info, self, Allgather, sendbuf, recvbuf
            )
        return self._prepare(_ALLGATHER_INIT, info, Allgather, sendbuf, recvbuf)

    def Allgatherv_init(  # noqa: N802 -- mpi4py's name
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Prequest | HostedPrequest:
        """Make a persistent request for an ``Allgatherv`` of these buffers.

        Parameters
        ----------
        sendbuf, recvbuf
            As for ``Allgatherv``.
        info
            Hints for the MPI library, if it carries the operation.

        Returns
        -------
        Prequest or HostedPrequest
            Inactive. The latter is the MPI library's, if the library carries the
            operation. It does so where it would carry ``Allgatherv``, and where
            some rank has less than ``MPI.THREAD_MULTIPLE``.

        Raises
        ------
        Error
            If the transport cannot be opened, or an earlier operation of this
            communicator failed. ``Wait`` and ``Test`` raise it if this one fails.
        MPI.Exception, BufferError
            As ``Allgatherv`` does.

        Notes
        -----
        MPI-4.1, section 6.13. This call is collective; it opens the transport if none
        is open. ``Start`` is local, and ranks may start their requests in different
        orders. Until it is complete, buffers are as for the non-blocking form.

        Examples
        --------
        >>> counts, blocks = [1] * comm.size, np.zeros(comm.size, int)
        >>> request = comm.Allgatherv_init(np.full(1, comm.rank), [blocks, counts])
        >>> mpimcast.Startall([request])
        >>> request.Wait()
        True
        >>> request.Free()
        """
        if self._limits.small_vector(recvbuf):
            return hosted.prepare(
                _ALLGATHERV_INIT, info, self, Allgatherv, sendbuf, recvbuf
            )
        return self._prepare(_ALLGATHERV_INIT, info, Allgatherv, sendbuf, recvbuf)

    # ---- ours or the MPI library's -------------------------------------------

    def _make(self, kind: Callable[..., Collective], *arguments: Any) -> Collective:
        """Make a collective; call the error handler if the arguments are not valid."""
        try:
            return kind(self, *arguments)
        except (Error, MPI.Exception) as error:
            error_codes.call_errhandler(self, error)
            raise

    def _start(
        self,
        library: Callable[..., MPI.Request],
        kind: Callable[..., Collective],
        *arguments: Any,
    ) -> Request | HostedRequest:
        """Start a collective, or have the MPI library do it."""
        state = self._comm_state or self._need_state()
        request = None
        if not state.bypass or targets.holds(*arguments):
            collective = self._make(kind, *arguments)
            carrier = targets.carrier_if_open(self, state, collective)
            request = carrier.start(collective) if carrier is not None else None
        if request is None:
            hosted.check_request(self, *arguments)
            return hosted.start(library, self, kind, *arguments)
        return request

    def _prepare(
        self,
        library: Callable[..., MPI.Prequest],
        info: MPI.Info,
        kind: Callable[..., Collective],
        *arguments: Any,
    ) -> Prequest | HostedPrequest:
        """Return a persistent request, perhaps the MPI library's. Collective."""
        state = self._comm_state or self._need_state()
        request = None
        if not state.bypass or targets.holds(*arguments):
            collective = self._make(kind, *arguments)
            carrier = targets.carrier(self, state, collective)
            if carrier is not None and state.threaded:
                request = carrier.prepare(collective)
            if request is None and collective.target.memory is not None:
                targets.refuse_request(
                    self, state, "other communicators have taken all of NODE_BYTES"
                )
        if request is None:
            hosted.check_request(self, *arguments)
            return hosted.prepare(library, info, self, kind, *arguments)
        return request
