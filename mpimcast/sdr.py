# SPDX-License-Identifier: BSD-3-Clause
"""Large messages between two ranks, over the engine that carries the collectives.

Two ranks `connect`, and then send each other messages of any size by unicast, in order.
Both directions are independent, and several messages may be under way in each. What a
network loses is found by the receiver's bitmap and repaired, within a window that may
be set for a long link. The name is that of the paper "SDR-RDMA: Software-Defined
Reliability Architecture for Planetary Scale RDMA Communication" (arXiv 2505.05366).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mpi4py import MPI

from mpimcast._session.handle import Handle, given
from mpimcast._session.pairs import PairState
from mpimcast._settings.config import Config
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from mpi4py.typing import BufSpec
    from typing_extensions import Self

    from mpimcast.requests import Request

# How lost chunks of a message are made up for.
Reliability = Literal["repeat", "code"]

__all__ = ["Pair", "connect", "connect_all"]


class Pair:
    """Two ranks that send messages to each other. `connect` makes it.

    Messages arrive in the order in which they were sent, and each is received by one
    ``Recv`` or ``Irecv`` of the same size. It is also a context manager, which closes
    the pair at its end.

    Attributes
    ----------
    rank : int
        This rank's number in the communicator that was passed to `connect`.
    peer : int
        The other rank's number there.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> from mpimcast import sdr
    >>> comm = MPI.COMM_WORLD
    >>> if comm.size > 1 and comm.rank < 2:
    ...     with sdr.connect(comm, 1 - comm.rank) as pair:
    ...         outgoing, incoming = np.full(1000, comm.rank), np.zeros(1000, int)
    ...         request = pair.Isend(outgoing)
    ...         pair.Recv(incoming)
    ...         complete = request.Wait()
    ...     assert incoming[-1] == pair.peer
    """

    def __init__(self, state: PairState) -> None:
        self._state = state
        self.rank, self.peer = state.numbers[state.rank], state.peer

    def __repr__(self) -> str:
        """Return the ranks, and the path between them."""
        path = self._state.path() or "closed"
        return f"<mpimcast.sdr.Pair of ranks {self.rank} and {self.peer}: {path}>"

    def Send(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, *, reliability: Reliability | None = None
    ) -> None:
        """Send a message.

        It begins once the peer has called ``Recv`` or ``Irecv`` for it, and returns
        when `buf` is the program's again. Two ranks that both call ``Send`` first and
        ``Recv`` then wait for each other for ever: one has to use ``Isend``.

        Parameters
        ----------
        buf
            The data, in any form that mpi4py takes.
        reliability
            How lost chunks of this message are made up for, ``"repeat"`` or ``"code"``,
            whatever the pair was connected with; a code needs a pair with
            RELIABILITY=code or auto.

        Raises
        ------
        ConfigError
            If the pair has no such `reliability`. Nothing was sent then.
        Error
            If the message failed, for example since the peer receives another size,
            or has ended. The pair cannot be used any more then.
        MPI.Exception
            If `buf` is not valid, as in mpi4py.
        """
        self._state.send(buf, reliability)

    def Recv(self, buf: BufSpec) -> None:  # noqa: N802 -- mpi4py's name
        """Receive the next message.

        Parameters
        ----------
        buf
            The place for it, in any form that mpi4py takes. It has the size of the
            message: of a larger array, pass a part. This lets the data follow the
            sender's call at once, where a size would first have to cross the link.

        Raises
        ------
        Error, MPI.Exception
            As ``Send`` does. The content of `buf` is undefined then.
        """
        self._state.receive(buf)

    def Isend(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, *, reliability: Reliability | None = None
    ) -> Request:
        """Start a ``Send``; return a request at once.

        Parameters
        ----------
        buf
            As for ``Send``. The program must not write to it until the request is
            complete.
        reliability
            As for ``Send``.

        Returns
        -------
        Request
            As ``Ibcast`` and its like return; the MPI library's ``Waitall`` and so on
            take it.

        Raises
        ------
        ConfigError
            As ``Send`` does.
        Error
            If an earlier message failed, or the MPI library lacks
            ``MPI.THREAD_MULTIPLE``. If this message fails, the request raises it.
        MPI.Exception
            If `buf` is not valid, as in mpi4py.
        """
        return self._state.start_sending(buf, reliability)

    def Irecv(self, buf: BufSpec) -> Request:  # noqa: N802 -- mpi4py's name
        """Start a ``Recv``; return a request at once.

        What is posted before the peer sends can be sent without waiting for a round
        trip.

        Parameters
        ----------
        buf
            As for ``Recv``. The program must not use it until the request is complete.

        Returns
        -------
        Request
            As for ``Isend``.

        Raises
        ------
        Error, MPI.Exception
            As ``Isend`` does.
        """
        return self._state.start_receiving(buf)

    def path(self) -> str:
        """Return in words what carries the messages; "" once the pair is closed."""
        return self._state.path()

    def stats(self) -> dict[str, int]:
        """Return this rank's counters of both directions, as those of `Intracomm`.

        What a pair sends by unicast for the first time counts as multicast there.
        """
        return dict(self._state.counters())

    def close(self) -> None:
        """Close the pair, once both ranks have called this and finished their messages.

        Pairs that are open when the program ends are closed then. A closed pair can be
        closed again.
        """
        self._state.close()

    def __enter__(self) -> Self:
        """Return the pair."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the pair, unless an exception ends the block: the peer may be waiting.

        After an exception the pair is closed when the program ends.
        """
        if error is None:
            self.close()


def connect(comm: MPI.Intracomm, peer: int, *, tag: int = 0, **settings: Any) -> Pair:
    """Connect this rank with another one. Both of them call this, and no other.

    It waits for the peer, in the MPI library and so without a limit: ENTRY_TIMEOUT and
    WARN_AFTER count for messages only. Ranks that connect with several others do so by
    `connect_all`, or they may wait for each other in a circle.

    Parameters
    ----------
    comm
        A communicator that has both ranks. If it is an `Intracomm` of mpimcast, the
        pair begins with the settings that it was given.
    peer
        The other rank.
    tag
        Equal on both ranks: it tells apart what threads of a rank open at once.
    **settings
        Settings as for `Intracomm`. TRANSPORT may name verbs and udp; those about
        multicast groups, nodes and proxies do not count. ``window_bytes`` sets how much
        may be in flight, even if receive buffers hold less: for a link of known
        bandwidth and round trip, twice their product.

    Returns
    -------
    Pair
        The pair.

    Raises
    ------
    Error
        If the ranks have different settings, or no transport connects them.
    MPI.Exception
        If `peer` is not another rank of `comm`.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> from mpimcast import sdr
    >>> comm = MPI.COMM_WORLD
    >>> if comm.size > 1 and comm.rank < 2:
    ...     pair = sdr.connect(comm, 1 - comm.rank, window_bytes="2M")
    ...     pair.close()
    """
    if isinstance(comm, Handle):
        settings = {**given(comm), **settings}
    config = Config.read(settings)
    numbers = _numbers(comm, peer)
    return Pair(_opened(_couple(comm, numbers, tag), numbers, config))


def connect_all(
    comm: MPI.Intracomm, peers: Iterable[int], *, tag: int = 0, **settings: Any
) -> dict[int, Pair]:
    """Connect this rank with several others, each of which does so in its turn.

    All ranks go through their pairs in the same order, so no circle of them waits.

    Parameters
    ----------
    comm, tag, **settings
        As for `connect`.
    peers
        The other ranks. Each of them passes this rank to its own call.

    Returns
    -------
    dict
        The pairs, by the peer's rank.

    Raises
    ------
    Error, MPI.Exception
        As `connect` does; pairs that were connected before stay open.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> from mpimcast import sdr
    >>> comm = MPI.COMM_WORLD
    >>> left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    >>> if comm.size > 1:
    ...     ring = sdr.connect_all(comm, {left, right})
    ...     for pair in ring.values():
    ...         pair.close()
    """
    rank = comm.Get_rank()
    ordered = sorted(set(peers), key=lambda peer: sorted((rank, peer)))
    return {peer: connect(comm, peer, tag=tag, **settings) for peer in ordered}


def _opened(
    couple: MPI.Intracomm, numbers: tuple[int, int], config: Config
) -> PairState:
    """Return the open state of a pair of ranks with these numbers."""
    state = PairState(couple, numbers, config)
    try:
        state.open()
    except Error as error:
        low, high = numbers
        raise type(error)(
            f"ranks {low} and {high}, which the following calls 0 and 1, cannot be "
            f"connected: {error}",
            ranks=[numbers[each] for each in error.ranks],
        ) from error
    return state


def _numbers(comm: MPI.Intracomm, peer: int) -> tuple[int, int]:
    """Return the numbers of this rank and of its peer, the lower one first.

    Raise MPI.Exception if the peer is not another rank of `comm`.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    if not (hasattr(peer, "__int__") and 0 <= int(peer) < size and peer != rank):
        raise MPI.Exception(MPI.ERR_RANK)
    low, high = sorted((rank, int(peer)))
    return low, high


def _couple(comm: MPI.Intracomm, numbers: tuple[int, int], tag: int) -> MPI.Intracomm:
    """Return a communicator of the MPI library for two ranks of another one."""
    whole = comm.Get_group()
    group = whole.Incl(numbers)
    try:
        return MPI.Intracomm(MPI.Intracomm.Create_group(comm, group, tag))
    finally:
        group.Free()
        whole.Free()
