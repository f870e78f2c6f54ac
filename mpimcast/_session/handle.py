# SPDX-License-Identifier: BSD-3-Clause
"""A handle of a communicator: its settings, what it tells, what is made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._session import pickling
from mpimcast._session.inherited import InheritedSettings
from mpimcast._session.state import CommunicatorState, attach, attached
from mpimcast._settings.config import Config
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Self

    from mpimcast.explanation import Explanation


class Handle(MPI.Intracomm):
    """A communicator that has settings and hands them, and its class, on.

    Handles of one communicator share one state. Communicators derived from it are
    of this class, except those with a topology.
    """

    # Its name in mpi4py, if it replaces one of the library's constants.
    _constant = ""
    _comm_state: CommunicatorState | None = None
    _inherited: InheritedSettings | None = None

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
        if isinstance(comm, Handle):
            self._inherited = comm._inherited  # noqa: SLF001 -- our own class
        state = attached(self)
        if state is None and self._inherited is None:
            self._inherited = InheritedSettings(config)
        state = self._need_state()
        state.update(settings)

    def _need_state(self) -> CommunicatorState:
        """Find the communicator's state, or begin one."""
        state = attached(self)
        if state is None:
            inherited = self._inherited or InheritedSettings(Config.read({}))
            state = CommunicatorState(self, inherited)
            attach(self, state)
        self._comm_state = state
        return state

    def _hand_on(self, comm: MPI.Intracomm) -> Self:
        """Return a handle of our class of a communicator derived from this one."""
        cls = type(self)
        derived = comm if isinstance(comm, cls) else cls.__new__(cls, comm)
        derived._inherited = (  # noqa: SLF001 -- our own class
            self._comm_state or self._need_state()
        ).inherited()
        return derived

    # ---- handles in other forms ----------------------------------------------

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        """Let pickle do what the program wants for the library's communicators."""
        registered = pickling.registered()
        if registered is not None:
            return registered(self)
        return super().__reduce_ex__(protocol)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Be pickled if the communicator is one of the predefined ones."""
        if self._constant:
            return self._constant
        settings = (
            self._comm_state.config.given() if self._comm_state is not None else {}
        )
        reduced = super().__reduce__()
        if isinstance(reduced, str) or not settings:
            return reduced
        _, (cls, comm) = reduced
        return _restore, (cls, comm, settings)

    def free(self) -> None:
        """Free the communicator, unless it is null or predefined.

        Examples
        --------
        >>> duplicate = comm.Dup()
        >>> duplicate.free()
        >>> duplicate == MPI.COMM_NULL
        True
        """
        if not self._constant:
            super().free()

    @classmethod
    def fromhandle(cls, handle: int) -> MPI.Comm:
        """Return a handle of the communicator with this handle of the MPI library.

        Examples
        --------
        >>> comm.fromhandle(comm.handle) == comm
        True
        """
        return wrap(cls, super().fromhandle(handle))

    @classmethod
    def fromint(cls, arg: int, /) -> MPI.Comm:
        """Return a handle of the communicator with this number in MPI's ABI.

        Examples
        --------
        >>> comm.fromint(comm.toint()) == comm
        True
        """
        return wrap(cls, super().fromint(arg))

    @classmethod
    def f2py(cls, arg: int) -> MPI.Comm:
        """Return a handle of the communicator with this number in Fortran.

        Examples
        --------
        >>> comm.f2py(comm.py2f()) == comm
        True
        """
        return wrap(cls, super().f2py(arg))

    # ---- what it does and did ------------------------------------------------

    def explain(self, nbytes: int) -> Explanation:
        """Say what carries an operation of this size, and why. Local.

        Parameters
        ----------
        nbytes
            Bytes of one rank's block, or of a Bcast's data.

        Returns
        -------
        Explanation
            The transport and the reason.

        Examples
        --------
        >>> print(mpimcast.Intracomm(MPI.COMM_SELF).explain(1 << 20))
        mpi: there is only one rank
        """
        return (self._comm_state or self._need_state()).explain(nbytes)

    def stats(self) -> dict[str, int]:
        """Return what this rank has counted for this communicator. Local.

        ``python -m mpimcast info --counters`` lists the counters with their units.

        Returns
        -------
        dict
            A number for each counter, summed over all operations since the
            communicator was opened. All are 0 before that, and where the MPI library
            carries everything.

        Examples
        --------
        >>> before = comm.stats()["epochs"]
        >>> comm.Bcast(np.zeros(1000))
        >>> comm.stats()["epochs"] - before in {0, 1}  # it may be the MPI library's
        True
        """
        return (self._comm_state or self._need_state()).stats()

    # ---- derived communicators -----------------------------------------------

    def Dup(self, info: MPI.Info | None = None) -> Self:  # noqa: N802
        """Duplicate it; the duplicate inherits the settings.

        Examples
        --------
        >>> duplicate = comm.Dup()
        >>> type(duplicate) is type(comm)
        True
        >>> duplicate.Free()
        """
        return self._hand_on(super().Dup(info))

    def Dup_with_info(self, info: MPI.Info) -> Self:  # noqa: N802
        """Duplicate it as ``Dup`` does, with other hints.

        Examples
        --------
        >>> duplicate = comm.Dup_with_info(MPI.INFO_NULL)
        >>> duplicate.Free()
        """
        return self._hand_on(super().Dup_with_info(info))

    def Clone(self) -> Self:  # noqa: N802
        """Duplicate it as ``Dup`` does.

        Examples
        --------
        >>> clone = comm.Clone()
        >>> clone.Free()
        """
        return self._hand_on(super().Clone())

    def Idup(  # noqa: N802
        self, info: MPI.Info | None = None
    ) -> tuple[Self, MPI.Request]:
        """Begin to duplicate it; complete the request before using the duplicate.

        Examples
        --------
        >>> duplicate, request = comm.Idup()
        >>> request.Wait()
        True
        >>> duplicate.Free()
        """
        comm, request = super().Idup(info)
        return self._hand_on(comm), request

    def Idup_with_info(  # noqa: N802
        self, info: MPI.Info
    ) -> tuple[Self, MPI.Request]:
        """Begin to duplicate it as ``Idup`` does, with other hints.

        Examples
        --------
        >>> duplicate, request = comm.Idup_with_info(MPI.INFO_NULL)
        >>> request.Wait()
        True
        >>> duplicate.Free()
        """
        comm, request = super().Idup_with_info(info)
        return self._hand_on(comm), request

    def Split(self, color: int = 0, key: int = 0) -> Self:  # noqa: N802
        """Divide it; every part inherits the settings.

        Examples
        --------
        >>> half = comm.Split(color=comm.rank % 2)
        >>> half.size == (comm.size + (comm.rank + 1) % 2) // 2
        True
        >>> half.Free()
        """
        return self._hand_on(super().Split(color, key))  # type: ignore[arg-type]

    def Split_type(  # noqa: N802
        self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL
    ) -> Self:
        """Divide it by where ranks are, as ``Split`` does.

        Examples
        --------
        >>> host = comm.Split_type(MPI.COMM_TYPE_SHARED)
        >>> host.Free()
        """
        return self._hand_on(super().Split_type(split_type, key, info))  # type: ignore[arg-type]

    def Create(self, group: MPI.Group) -> Self:  # noqa: N802
        """Make one of some of its ranks, called by all; it inherits the settings.

        Examples
        --------
        >>> group = comm.Get_group()
        >>> same = comm.Create(group)
        >>> same.Free()
        """
        return self._hand_on(super().Create(group))  # type: ignore[arg-type]

    def Create_group(self, group: MPI.Group, tag: int = 0) -> Self:  # noqa: N802
        """Make one of some of its ranks, called by those; it inherits the settings.

        Examples
        --------
        >>> group = comm.Get_group()
        >>> same = comm.Create_group(group)
        >>> same.Free()
        """
        return self._hand_on(super().Create_group(group, tag))

    @classmethod
    def Create_from_group(  # noqa: N802
        cls, group: MPI.Group, *args: Any, **kwargs: Any
    ) -> Self:
        """Make one of a group; its settings come from the variables alone.

        Examples
        --------
        >>> group = comm.Get_group()
        >>> same = mpimcast.Intracomm.Create_from_group(group, "org.example")
        >>> same.Free()
        """
        return cls.__new__(cls, super().Create_from_group(group, *args, **kwargs))


def _restore(
    cls: type[Handle], comm: MPI.Intracomm, settings: dict[str, Any]
) -> Handle:
    """Make a handle with `settings`, or without if its communicator has others here."""
    handle = cls.__new__(cls, comm)
    try:
        Handle.__init__(handle, comm, **settings)
    except ConfigError:
        Handle.__init__(handle, comm)
    return handle


def wrap(cls: type[Handle], comm: MPI.Comm) -> MPI.Comm:
    """Return a handle of a class of ours if it is an intracommunicator's, else `comm`.

    Those with a topology are left alone.
    """
    return cls.__new__(cls, comm) if type(comm) is MPI.Intracomm else comm


def replace_constant(name: str, handle: Handle) -> None:
    """Put a handle in the place of one of mpi4py's constants, such as COMM_WORLD."""
    handle._constant = name  # noqa: SLF001 -- our own class
    handle.__module__ = MPI.__name__  # where pickle looks for the name
    setattr(MPI, name, handle)
