# SPDX-License-Identifier: BSD-3-Clause
"""Decides what carries a collective, and refuses what cannot go into shared memory.

The MPI library knows nothing of memory that ranks share: it would let each of them
write there at any time. So mpimcast carries what goes there, whatever its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from mpi4py import MPI

from mpimcast._mpi import error_codes
from mpimcast._support.shared_memory import shared_memory
from mpimcast.errors import Error

if TYPE_CHECKING:
    from mpimcast._session.carrier import Carrier
    from mpimcast._session.collectives import Collective
    from mpimcast._session.state import CommunicatorState

# More bytes than any below which the MPI library carries an operation.
EVERY_BYTES = 2**63 - 1


def holds(*arguments: Any) -> bool:
    """Return whether one of a collective's buffers begins in shared memory.

    They have any form that mpi4py takes; other arguments do no harm.
    """
    if not shared_memory.known:
        return False
    for argument in arguments:
        is_list = isinstance(argument, list | tuple) and len(argument) > 0
        try:
            address = MPI.Get_address(argument[0] if is_list else argument)
        except Exception:  # noqa: BLE001, S112 -- no buffer, as mpi4py will say itself
            continue
        if shared_memory.find(address) is not None:
            return True
    return False


def carrier(
    comm: MPI.Intracomm, state: CommunicatorState, collective: Collective
) -> Carrier | None:
    """Return what carries a blocking collective; None for the MPI library. Collective.

    Raise an Error if the result cannot go where the buffer lies.
    """
    if collective.target.memory is None:
        return None if state.bypass else state.carrier(collective.nbytes)
    found = None if state.bypass else state.carrier(EVERY_BYTES)
    _check(comm, state, collective, found)
    return found


def carrier_if_open(
    comm: MPI.Intracomm, state: CommunicatorState, collective: Collective
) -> Carrier | None:
    """Return what carries a collective that returns a request. Local.

    Raise an Error if the result cannot go where the buffer lies.
    """
    if collective.target.memory is None:
        return None if state.bypass else state.carrier_if_open(collective.nbytes)
    found = None if state.bypass else state.carrier_if_open(EVERY_BYTES)
    if found is None and not state.bypass:
        refuse_request(
            comm, state, "no blocking collective has opened this communicator"
        )
    _check(comm, state, collective, found)
    return found


def refuse_request(comm: MPI.Intracomm, state: CommunicatorState, why: str) -> NoReturn:
    """Raise the Error of a request that the MPI library would have to carry.

    Parameters
    ----------
    why
        Why it would, if all ranks have THREAD_MULTIPLE.
    """
    if not state.threaded and state.inherited().thread_level is not None:
        why = "some rank's MPI library has less than THREAD_MULTIPLE"
    _refuse(
        comm,
        "this request's result cannot go into an array that ranks share, because "
        f"{why}; use a blocking collective, or pass private memory",
    )


def _check(
    comm: MPI.Intracomm,
    state: CommunicatorState,
    collective: Collective,
    found: Carrier | None,
) -> None:
    memory = collective.target.memory
    members = frozenset() if found is None else found.streams.members
    if memory is None or members == memory.members:
        return
    why = "whose ranks on this node are not the same processes"
    if not members:
        why = f"in which no ranks share memory ({state.explain(EVERY_BYTES).reason})"
    _refuse(
        comm,
        f"{collective}: the result cannot go into this array, which ranks share: it "
        f"was made for another communicator than this one, {why}. Make one with "
        "mpimcast.empty(..., comm=...) for this communicator, or pass private memory",
    )


def _refuse(comm: MPI.Intracomm, text: str) -> NoReturn:
    error = Error(text)
    error_codes.call_errhandler(comm, error)
    raise error
