# SPDX-License-Identifier: BSD-3-Clause
"""Pickles handles of the predefined communicators as mpi4py does.

mpi4py pickles ``MPI.COMM_WORLD`` and ``MPI.COMM_SELF`` by their names, and other
handles of the same two as a class and the constant. mpimcast's handles do the same. A
pickled name means the constant of the process that loads it: the MPI library's, or
mpimcast's under ``run``.
"""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Callable


def registered() -> Callable[[Any], str | tuple[Any, ...]] | None:
    """Return the program's ``copyreg`` function for MPI communicators, if any.

    A program that registers one also means it for mpimcast's communicators.
    """
    reducer = copyreg.dispatch_table.get(MPI.Intracomm)
    return None if reducer is _reduce_library else reducer


def keep_constants() -> None:
    """Let pickle handle the MPI library's constants, whose names mpimcast has taken."""
    if MPI.Intracomm not in copyreg.dispatch_table:
        copyreg.pickle(MPI.Intracomm, _reduce_library)


def _reduce_library(comm: MPI.Intracomm) -> tuple[Any, ...]:
    """Return mpi4py's reduction of a handle, with a constant in place of its name.

    That constant is mpimcast's, but the class in the reduction makes a handle of the
    MPI library of it when it is loaded.
    """
    reduced = comm.__reduce__()
    if isinstance(reduced, str):
        return MPI.Intracomm, (getattr(MPI, reduced),)
    return reduced
