# SPDX-License-Identifier: BSD-3-Clause
"""The sizes of MPI's predefined datatypes, for the check whether a message is small."""

from __future__ import annotations

import functools

from mpi4py import MPI

from mpimcast._small import TYPE_SIZES


@functools.cache
def learn() -> list[MPI.Datatype]:
    """Let `Limits` know the datatypes; return them, so that they keep their ids.

    MPI must have been initialised. A derived datatype may have items that overlap or
    begin before the buffer, so it stays unknown.
    """
    known = [
        each
        for each in vars(MPI).values()
        if isinstance(each, MPI.Datatype) and _is_predefined(each)
    ]
    TYPE_SIZES.update((id(each), each.Get_size()) for each in known)
    return known


def _is_predefined(datatype: MPI.Datatype) -> bool:
    """Return whether a datatype is predefined, and there in this MPI library.

    Open MPI 4 has handles even of Fortran's types that it was built without.
    """
    try:
        return datatype != MPI.DATATYPE_NULL and datatype.is_predefined
    except MPI.Exception:
        return False
