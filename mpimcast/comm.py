# SPDX-License-Identifier: BSD-3-Clause
"""A communicator whose collectives go through multicast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast import lifetime, objects
from mpimcast.binding import Binding, Heritage
from mpimcast.config import Config
from mpimcast.operation import Allgather, Allgatherv, Bcast

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace
    from typing_extensions import Self

    from mpimcast.binding import Explanation
    from mpimcast.operation import Operation


class Intracomm(MPI.Intracomm):
    """Another handle of an intracommunicator, whose collectives are multicast.

    These are ``Bcast``, ``Allgather``, ``Allgatherv``, ``bcast`` and ``allgather``.
    Everything else is the MPI library's. Handles of one communicator share one
    state; communicators derived from it are of this class and inherit its settings,
    except those with a topology.

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
    """

    _binding: Binding | None = None
    _heritage: Heritage | None = None

    def __new__(
        cls,
        comm: MPI.Comm | None = None,
        **settings: object,  # noqa: ARG004 -- for __init__
    ) -> Self:
        """Make a handle, as mpi4py also does without ``__init__``, in Dup say."""
        return super().__new__(cls, comm)

    def __init__(self, comm: MPI.Comm | None = None, **settings: object) -> None:
        config = Config.read(settings)
        if comm is None or not self:
            return
        if isinstance(comm, Intracomm):
            self._heritage = comm._heritage  # noqa: SLF001 -- our own class
        binding = lifetime.attached(self)
        if binding is None and self._heritage is None:
            self._heritage = Heritage(config)
        binding = self._bind()
        binding.update(settings)

    def _bind(self) -> Binding:
        """Find the communicator's state, or begin one."""
        binding = lifetime.attached(self)
        if binding is None:
            heritage = self._heritage or Heritage(Config.read({}))
            binding = Binding(self, heritage)
            lifetime.attach(self, binding)
        self._binding = binding
        return binding

    def _hand_on(self, comm: MPI.Intracomm) -> Self:
        """Return a handle of our class of a communicator derived from this one."""
        cls = type(self)
        derived = comm if isinstance(comm, cls) else cls.__new__(cls, comm)
        derived._heritage = (  # noqa: SLF001 -- our own class
            self._binding or self._bind()
        ).heritage()
        return derived

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
        operation = kind(self, *arguments)
        if not binding.takes(operation.nbytes):
            return False
        binding.run(operation)
        return True

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
        """
        binding = self._binding or self._bind()
        if binding.bypass:
            return MPI.Intracomm.allgather(self, sendobj)
        return objects.allgather(self, binding, sendobj)

    # ---- collectives that nobody waits in ------------------------------------

    def Ibcast(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, root: int = 0
    ) -> MPI.Request:
        """Start what ``Bcast`` does, and return at once, as ``Iallgather``."""
        ours = self._start(Bcast, buf, root)
        return MPI.Intracomm.Ibcast(self, buf, root) if ours is None else ours

    def Iallgather(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB
    ) -> MPI.Request:
        """Start what ``Allgather`` does, and return at once.

        Before the first blocking collective has opened what is needed, the MPI
        library does it.
        """
        ours = self._start(Allgather, sendbuf, recvbuf)
        if ours is None:
            return MPI.Intracomm.Iallgather(self, sendbuf, recvbuf)
        return ours

    def Iallgatherv(  # noqa: N802 -- mpi4py's name
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV
    ) -> MPI.Request:
        """Start what ``Allgatherv`` does, and return at once, as ``Iallgather``."""
        ours = self._start(Allgatherv, sendbuf, recvbuf)
        if ours is None:
            return MPI.Intracomm.Iallgatherv(self, sendbuf, recvbuf)
        return ours

    def Bcast_init(  # noqa: N802 -- mpi4py's name
        self, buf: BufSpec, root: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> MPI.Prequest:
        """Make a request that does what ``Bcast`` does at each ``Start``."""
        ours = self._prepare(Bcast, buf, root)
        return MPI.Intracomm.Bcast_init(self, buf, root, info) if ours is None else ours

    def Allgather_init(  # noqa: N802 -- mpi4py's name
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> MPI.Prequest:
        """Make a request that does what ``Allgather`` does at each ``Start``."""
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
        """Make a request that does what ``Allgatherv`` does at each ``Start``."""
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
        operation = kind(self, *arguments)
        return binding.start(operation) if binding.starts(operation.nbytes) else None

    def _prepare(
        self, kind: Callable[..., Operation], *arguments: Any
    ) -> MPI.Prequest | None:
        """Make a persistent request unless it is the MPI library's. Collective."""
        binding = self._binding or self._bind()
        if binding.bypass:
            return None
        operation = kind(self, *arguments)
        if binding.takes(operation.nbytes) and binding.threaded:
            return binding.prepare(operation)
        return None

    # ---- what it does and did ------------------------------------------------

    def explain(self, nbytes: int) -> Explanation:
        """Say which way an operation takes, and why. Local.

        Parameters
        ----------
        nbytes
            Bytes that one rank contributes.
        """
        return (self._binding or self._bind()).explain(nbytes)

    def stats(self) -> dict[str, int]:
        """Return counters of this communicator on this rank. Local."""
        return (self._binding or self._bind()).stats()

    # ---- derived communicators -----------------------------------------------

    def Dup(self, info: MPI.Info | None = None) -> Self:  # noqa: N802, D102
        return self._hand_on(super().Dup(info))

    def Dup_with_info(self, info: MPI.Info) -> Self:  # noqa: N802, D102
        return self._hand_on(super().Dup_with_info(info))

    def Clone(self) -> Self:  # noqa: N802, D102
        return self._hand_on(super().Clone())

    def Idup(  # noqa: N802, D102
        self, info: MPI.Info | None = None
    ) -> tuple[Self, MPI.Request]:
        comm, request = super().Idup(info)
        return self._hand_on(comm), request

    def Idup_with_info(  # noqa: N802, D102
        self, info: MPI.Info
    ) -> tuple[Self, MPI.Request]:
        comm, request = super().Idup_with_info(info)
        return self._hand_on(comm), request

    def Split(self, color: int = 0, key: int = 0) -> Self:  # noqa: N802, D102
        return self._hand_on(super().Split(color, key))  # type: ignore[arg-type]

    def Split_type(  # noqa: N802, D102
        self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> Self:
        return self._hand_on(super().Split_type(split_type, key, info))  # type: ignore[arg-type]

    def Create(self, group: MPI.Group) -> Self:  # noqa: N802, D102
        return self._hand_on(super().Create(group))  # type: ignore[arg-type]

    def Create_group(self, group: MPI.Group, tag: int = 0) -> Self:  # noqa: N802, D102
        return self._hand_on(super().Create_group(group, tag))

    @classmethod
    def Create_from_group(  # noqa: N802, D102
        cls, group: MPI.Group, *args: Any, **kwargs: Any
    ) -> Self:
        return cls.__new__(cls, super().Create_from_group(group, *args, **kwargs))

    def Create_intercomm(  # noqa: N802, D102
        self,
        local_leader: int,
        peer_comm: MPI.Intracomm,
        remote_leader: int,
        tag: int = 0,
    ) -> Intercomm:
        return Intercomm(
            super().Create_intercomm(local_leader, peer_comm, remote_leader, tag)
        )


class Intercomm(MPI.Intercomm):
    """An intercommunicator made from ours, so that ``Merge`` gives ours again.

    Settings are then read anew: the other side may have had others.
    """

    def Merge(self, high: bool = False) -> Intracomm:  # noqa: FBT001, FBT002, N802, D102
        return Intracomm(super().Merge(high))
