# SPDX-License-Identifier: BSD-3-Clause
"""The state of a communicator as its attribute, which all its handles find."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from mpi4py import MPI

from mpimcast._session import lifetime

if TYPE_CHECKING:
    from mpimcast._session.state import CommunicatorState


def attach(comm: MPI.Intracomm, state: CommunicatorState) -> None:
    """Make `state` an attribute of its communicator."""
    comm.Set_attr(_keyval(), state)


def attached(comm: MPI.Intracomm) -> CommunicatorState | None:
    """Return the state of a communicator, if it has one."""
    return comm.Get_attr(_keyval())  # type: ignore[return-value]


@functools.cache
def _keyval() -> int:
    def delete(_comm: MPI.Comm, _keyval: int, state: CommunicatorState) -> None:
        lifetime.remove(state)
        state.close()

    return MPI.Comm.Create_keyval(delete_fn=delete)
