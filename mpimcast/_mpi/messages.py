# SPDX-License-Identifier: BSD-3-Clause
"""The forms of mpi4py's messages: a buffer, or a list that begins with one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Sequence


class Items(NamedTuple):
    """The parts of a message as its caller gave them; None stands for an absent one.

    Where blocks have different sizes, `counts` and `displacements` are sequences.
    """

    buffer: Any
    counts: Any = None
    displacements: Any = None
    datatype: MPI.Datatype | str | None = None


def split(spec: Any, pairs: tuple[type[Sequence[Any]], ...]) -> Items:
    """Split a message into its items.

    Parameters
    ----------
    spec
        The message.
    pairs
        A second item of one of these types is a pair: counts and displacements.

    Raises
    ------
    ValueError
        If the message, or a pair in it, has a wrong number of items.
    """
    if not isinstance(spec, list | tuple):
        return Items(spec)
    counts: Any = None
    displacements: Any = None
    datatype: Any = None
    match spec:
        case [buffer, MPI.Datatype() | str() as datatype]:
            pass
        case [buffer, counts]:
            pass
        case [buffer, counts, datatype]:
            pass
        case [buffer, counts, displacements, datatype]:
            return Items(buffer, counts, displacements, datatype)
        case _:
            raise ValueError(f"message: {len(spec)} items, expecting 2 to 4")
    if isinstance(counts, pairs):
        counts, displacements = counts
    return Items(buffer, counts, displacements, datatype)
