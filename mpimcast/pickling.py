# SPDX-License-Identifier: BSD-3-Clause
"""How handles are pickled: the predefined communicators, as mpi4py pickles them.

mpi4py pickles ``MPI.COMM_WORLD`` and ``MPI.COMM_SELF`` by their names and other handles
of the same two as a class and the constant. So do handles of ours. A pickle of a name
means the constant of the process that loads it: the library's, or ours under ``run``.
"""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast.handle import Handle


def reduce(handle: Handle, settings: dict[str, object]) -> str | tuple[Any, ...]:
    """Return what pickle needs to know of a handle. Raises as mpi4py does.

    Parameters
    ----------
    handle
        A handle of ours that is none of mpi4py's constants.
    settings
        Keywords that go along. Those from variables stay behind, as do those of this
        rank alone: the process that loads the pickle has its own.
    """
    reduced = MPI.Intracomm.__reduce__(handle)
    if isinstance(reduced, str) or not settings:
        return reduced
    _, (cls, comm) = reduced
    return _restore, (cls, comm, settings)


def _restore(
    cls: type[Handle], comm: MPI.Intracomm, settings: dict[str, Any]
) -> Handle:
    """Make a handle with settings, unless its communicator has others here."""
    from mpimcast.handle import Handle

    handle = cls.__new__(cls, comm)
    try:
        Handle.__init__(handle, comm, **settings)
    except ConfigError:
        Handle.__init__(handle, comm)
    return handle


def registered() -> Callable[[Any], str | tuple[Any, ...]] | None:
    """Return the function in ``copyreg`` for the library's communicators, if any.

    A program that teaches pickle to deal with them means ours too.
    """
    reducer = copyreg.dispatch_table.get(MPI.Intracomm)
    return None if reducer is _reduce_library else reducer


def keep_constants() -> None:
    """Let pickle deal with the library's constants, whose names are now ours."""
    if MPI.Intracomm not in copyreg.dispatch_table:
        copyreg.pickle(MPI.Intracomm, _reduce_library)


def _reduce_library(comm: MPI.Intracomm) -> tuple[Any, ...]:
    """Return what mpi4py says of a handle of the library, with ours for a name.

    It comes back as a handle of the library, which its class sees to.
    """
    reduced = comm.__reduce__()
    if isinstance(reduced, str):
        return MPI.Intracomm, (getattr(MPI, reduced),)
    return reduced
