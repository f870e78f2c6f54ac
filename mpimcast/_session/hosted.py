# SPDX-License-Identifier: BSD-3-Clause
"""Has the MPI library carry collectives, also those whose data is on a device.

A library that is aware of devices gets their buffers as they are. Any other gets copies
in the host's memory, which only blocking collectives can wait for.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from mpimcast._device.device import Copy, Device, device_of, pool
from mpimcast._mpi import buffers, error_codes, messages
from mpimcast._mpi.awareness import is_aware_of
from mpimcast._session.hosted_landing import HostedLanding
from mpimcast.errors import Error
from mpimcast.requests import HostedPrequest, HostedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mpimcast._session.collectives import Collective

# Which argument of a collective gets the result.
_RESULTS = {"Bcast": 0, "Allgather": 1, "Allgatherv": 1}

# The types of items that copies have, by their sizes: only these matter to MPI.
_TYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16", 32: "G"}


def run(library: Callable[..., None], comm: MPI.Intracomm, *arguments: Any) -> None:
    """Have the MPI library carry a blocking collective."""
    with contextlib.ExitStack() as copies:
        passed = list(arguments)
        for place, argument in enumerate(arguments):
            if buffers.lies_on_device(argument):
                returns = place == _RESULTS[library.__name__]
                copy = _on_host(argument, returns=returns)
                passed[place] = copies.enter_context(copy)
        library(comm, *passed)


def start(
    library: Callable[..., MPI.Request],
    comm: MPI.Intracomm,
    kind: Callable[..., Collective],
    *arguments: Any,
) -> HostedRequest:
    """Have the MPI library start a collective, for which `kind` stands."""
    make = partial(HostedLanding, comm, kind, arguments)
    return HostedRequest(library(comm, *arguments), make)


def prepare(
    library: Callable[..., MPI.Prequest],
    info: MPI.Info,
    comm: MPI.Intracomm,
    kind: Callable[..., Collective],
    *arguments: Any,
) -> HostedPrequest:
    """Have the MPI library make a persistent request, as `start` does."""
    make = partial(HostedLanding, comm, kind, arguments)
    return HostedPrequest(library(comm, *arguments, info), make)


def check_request(comm: MPI.Intracomm, *arguments: Any) -> None:
    """Raise an Error if the MPI library cannot read the buffers of a request."""
    for argument in filter(buffers.lies_on_device, arguments):
        device = _device_of(argument)
        if is_aware_of(device.name):
            continue
        error = Error(
            f"rank {comm.Get_rank()}: a buffer of this request lies in the memory of a "
            f"device ({device.name}), of which the MPI library, which would carry it, "
            "is not aware. Use the blocking collective; or let mpimcast carry this "
            "request: a blocking collective opens the communicator, and explain() says "
            "what decides about this size, such as MIN_BYTES and CHOICE"
        )
        error_codes.call_errhandler(comm, error)
        raise error


def _device_of(message: Any) -> Device:
    buffer = messages.split(message, (list, tuple)).buffer
    device = device_of(MPI.Get_address(buffer))
    assert device is not None  # noqa: S101 -- it lies on one
    return device


@contextlib.contextmanager
def _on_host(message: Any, *, returns: bool) -> Iterator[Any]:
    """Yield a message with a copy of its buffer in the host's memory.

    If it `returns`, the copy's content goes to the device at the end.
    """
    device = _device_of(message)
    if is_aware_of(device.name):
        yield message
        return
    whole = buffers.whole(messages.split(message, (list, tuple)).buffer)
    pinned = pool.take(whole.nbytes, device)
    copies = [Copy(pinned.address, whole.address, whole.nbytes)]
    device.follow(whole.array)
    device.fetch(copies)
    device.finish()
    memory: Any = MPI.buffer.fromaddress(pinned.address, whole.nbytes)
    copy = np.frombuffer(memory, _TYPES.get(whole.item_bytes, "u1"))
    try:
        yield [copy, *message[1:]] if isinstance(message, list | tuple) else copy
        if returns:
            device.store(copies)
            device.finish()
    finally:
        pool.give_back(pinned)
