# SPDX-License-Identifier: BSD-3-Clause
"""A handle of a communicator: its settings, its reports, its derived communicators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._mpi.error_codes import call_errhandler
from mpimcast._session import pickling, tracing
from mpimcast._session.attributes import attach, attached
from mpimcast._session.inherited import InheritedSettings
from mpimcast._session.state import CommunicatorState
from mpimcast._session.targets import EVERY_BYTES, holds
from mpimcast._session.thresholds import express_within
from mpimcast._settings.config import Config
from mpimcast._small import Limits
from mpimcast.errors import ConfigError, Error

if TYPE_CHECKING:
    from typing_extensions import Self

    from mpimcast.explanation import Explanation
    from mpimcast.stranger import Stranger


class Handle(MPI.Intracomm):
    """A communicator that has settings, and hands on its settings and its class.

    Handles of one communicator share one state. Communicators derived from it are
    of this class, except those with a topology.
    """

    # The name of the constant of mpi4py that this handle replaces, if any.
    _constant = ""
    _comm_state: CommunicatorState | None = None
    # Those of the state, once the handle has found it; before that, no size is small.
    _limits = Limits()
    _request_limits = Limits()
    _express = express_within(_limits)
    _inherited: InheritedSettings | None = None

    def __new__(
        cls,
        comm: MPI.Comm | None = None,
        **settings: object,  # noqa: ARG004 -- for __init__
    ) -> Self:
        """Make a handle; mpi4py does this without ``__init__``, for example in Dup."""
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
        tracing.begin(self, state.config, state.thresholds)

    def _need_state(self) -> CommunicatorState:
        """Find the communicator's state, or begin one."""
        state = attached(self)
        if state is None:
            inherited = self._inherited or InheritedSettings(Config.read({}))
            state = CommunicatorState(self, inherited)
            tracing.begin(self, state.config, state.thresholds)
            attach(self, state)
        self._comm_state = state
        self._limits = state.thresholds.limits
        self._request_limits = state.thresholds.request_limits
        self._express = state.thresholds.express
        return state

    def _hand_on(self, comm: MPI.Intracomm) -> Self:
        """Return a handle, of this class, for a communicator derived from this one."""
        cls = type(self)
        derived = comm if isinstance(comm, cls) else cls.__new__(cls, comm)
        derived._inherited = (  # noqa: SLF001 -- our own class
            self._comm_state or self._need_state()
        ).inherited()
        return derived

    # ---- handles in other forms ----------------------------------------------

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        """Let pickle use the program's own function for communicators, if it has one.

        Such a function is registered for the MPI library's communicators.
        """
        registered = pickling.registered()
        if registered is not None:
            return registered(self)
        return super().__reduce_ex__(protocol)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return what pickle needs; only predefined communicators can be pickled."""
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
        """Return a handle of the communicator that has this handle in the MPI library.

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

    def strangers(self) -> list[Stranger]:
        """Return the addresses from which this rank has refused datagrams. Local.

        Returns
        -------
        list of Stranger
            The latest sixteen, of all communicators of the same processes. Empty where
            no network is used, and after the end of the communicator.

        Examples
        --------
        >>> [str(stranger) for stranger in comm.strangers()]
        []
        """
        return (self._comm_state or self._need_state()).strangers()

    def _share(self, nbytes: int, what: str) -> memoryview | None:
        """Return memory for an array that this node's ranks share. Collective.

        Return None if no ranks share memory, or for no bytes. `what` is the array in
        words, equal on all ranks.
        """
        state = self._comm_state or self._need_state()
        carrier = None if state.bypass else state.carrier(EVERY_BYTES)
        if carrier is None:
            return None
        Limits.hold_back(holds)
        try:
            return carrier.streams.share(nbytes, what)
        except Error as error:
            call_errhandler(self, error)
            raise

    # ---- derived communicators -----------------------------------------------

    def Dup(self, info: MPI.Info | None = None) -> Self:  # noqa: N802
        """Duplicate the communicator; the duplicate inherits its settings.

        Examples
        --------
        >>> duplicate = comm.Dup()
        >>> type(duplicate) is type(comm)
        True
        >>> duplicate.Free()
        """
        return self._hand_on(super().Dup(info))

    def Dup_with_info(self, info: MPI.Info) -> Self:  # noqa: N802
        """Duplicate the communicator as ``Dup`` does, with other hints.

        Examples
        --------
        >>> duplicate = comm.Dup_with_info(MPI.INFO_NULL)
        >>> duplicate.Free()
        """
        return self._hand_on(super().Dup_with_info(info))

    def Clone(self) -> Self:  # noqa: N802
        """Duplicate the communicator as ``Dup`` does.

        Examples
        --------
        >>> clone = comm.Clone()
        >>> clone.Free()
        """
        return self._hand_on(super().Clone())

    def Idup(  # noqa: N802
        self, info: MPI.Info | None = None
    ) -> tuple[Self, MPI.Request]:
        """Start a ``Dup``; complete the request before using the duplicate.

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
        """Start a ``Dup`` as ``Idup`` does, with other hints.

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
        """Divide the communicator; every part inherits its settings.

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
        """Divide the communicator by where its ranks are, as ``Split`` does.

        Examples
        --------
        >>> host = comm.Split_type(MPI.COMM_TYPE_SHARED)
        >>> host.Free()
        """
        return self._hand_on(super().Split_type(split_type, key, info))  # type: ignore[arg-type]

    def Create(self, group: MPI.Group) -> Self:  # noqa: N802
        """Make a communicator of a group of these ranks, with the same settings.

        All ranks call this method, including those that are not in the group.

        Examples
        --------
        >>> group = comm.Get_group()
        >>> same = comm.Create(group)
        >>> same.Free()
        """
        return self._hand_on(super().Create(group))  # type: ignore[arg-type]

    def Create_group(self, group: MPI.Group, tag: int = 0) -> Self:  # noqa: N802
        """Make a communicator of a group of these ranks, with the same settings.

        Only the ranks in the group call this method.

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
        """Make a communicator of a group, with settings from variables alone.

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
    """Make a handle with `settings`; drop them if its communicator has others here."""
    handle = cls.__new__(cls, comm)
    try:
        Handle.__init__(handle, comm, **settings)
    except ConfigError:
        Handle.__init__(handle, comm)
    return handle


def given(handle: Handle) -> dict[str, object]:
    """Return the settings that handles of a communicator were given."""
    state = handle._comm_state or handle._need_state()  # noqa: SLF001 -- our own class
    return state.config.given()


def wrap(cls: type[Handle], comm: MPI.Comm) -> MPI.Comm:
    """Return a handle of class `cls` for an intracommunicator, else `comm` itself.

    Intracommunicators with a topology are also returned as they are.
    """
    return cls.__new__(cls, comm) if type(comm) is MPI.Intracomm else comm


def replace_constant(name: str, handle: Handle) -> None:
    """Put a handle in the place of one of mpi4py's constants, such as COMM_WORLD."""
    handle._constant = name  # noqa: SLF001 -- our own class
    handle.__module__ = MPI.__name__  # where pickle looks for the name
    setattr(MPI, name, handle)
